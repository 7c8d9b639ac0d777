package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// maxInline is the largest event that stands in the database itself. A larger
// one is a file beside it, named by its digest, and the row has the digest.
const maxInline = 32 << 10

// bodyMark begins such a row; no JSON begins with it.
const bodyMark = "\x00sha256:"

// bodies is the folder of a session's large events.
func (s *Store) bodies(id string) string {
	return filepath.Join(s.dir, "bodies", "of-"+filepath.Base(id))
}

// put keeps a large event beside the database and gives what the row has. The
// file is whole before the row is there: a kill in between leaves a file that
// nothing names.
func (s *Store) put(id string, data json.RawMessage) (json.RawMessage, error) {
	if len(data) <= maxInline {
		return data, nil
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	path := filepath.Join(s.bodies(id), name)
	if _, err := os.Stat(path); err == nil {
		return json.RawMessage(bodyMark + name), nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return nil, err
	}
	return json.RawMessage(bodyMark + name), nil
}

// body is the event that a row stands for. One that is gone or altered is an
// error that names it, never another event.
func (s *Store) body(id string, row []byte) (json.RawMessage, error) {
	if len(row) != len(bodyMark)+64 || string(row[:len(bodyMark)]) != bodyMark {
		return append(json.RawMessage{}, row...), nil
	}
	name := string(row[len(bodyMark):])
	data, err := os.ReadFile(filepath.Join(s.bodies(id), filepath.Base(name)))
	if err != nil {
		return nil, fmt.Errorf("a body of the session log: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("the body %s of the session log was altered", name)
	}
	return data, nil
}
