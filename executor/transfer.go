package executor

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/audit"
	"harness/executor/bundle"
)

// Export writes a session's folder, with the planner's texts, as a bundle. The
// session must not be at work.
func Export(w io.Writer, state, id string, texts map[string][]byte) error {
	dir := filepath.Join(state, "sessions", id)
	if _, err := os.Stat(dir); err != nil {
		return contract.Errorf(v1.Error_not_found, "the executor has no session %s", id)
	}
	lease, err := takeLease(dir)
	if err != nil {
		return err
	}
	defer lease.Close()
	return bundle.Write(w, texts, dir, func(rel string) bool {
		return rel == "lease" || rel == "sandbox" || strings.HasSuffix(rel, "-shm")
	})
}

// Import reads a bundle and puts the session's folder in place once accept
// says that its texts are whole and which session it is.
func Import(r io.Reader, state string, accept func(texts map[string][]byte) (id string, err error)) error {
	sessions := filepath.Join(state, "sessions")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(sessions, "import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "session")
	texts, err := bundle.Read(r, dir)
	if err != nil {
		return err
	}
	id, err := accept(texts)
	if err != nil {
		return err
	}
	if err := contract.CheckID("session_id", id); err != nil {
		return err
	}
	to := filepath.Join(sessions, id)
	if _, err := os.Lstat(to); err == nil {
		return contract.Errorf(v1.Error_already_exists, "the session %s is here already", id)
	}
	if err := setAudit(state, dir, id); err != nil {
		return err
	}
	return os.Rename(dir, to)
}

// setAudit keeps an audit log that another machine's key has signed beside the
// one that goes on here.
func setAudit(state, dir, id string) error {
	log, err := openAudit(state, dir, id)
	if err == nil {
		return log.Close()
	}
	name := filepath.Join(dir, audit.File)
	if err := os.Rename(name, name+".imported"); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
