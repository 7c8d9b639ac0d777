package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"harness/executor/redact"
)

// Key signs the heads of all logs of one executor's state folder, and makes the
// digests that stand for secrets in them.
type Key struct {
	signer note.Signer
	public string
	redact *redact.Redactor
}

// Public is the key that verifies, as golang.org/x/mod/sumdb/note writes it.
func (k *Key) Public() string { return k.public }

const keyFile = "audit.key"

// OpenKey reads the key in an executor's state folder, and makes it on first
// use. Several processes may do so at once: the first one's key holds.
func OpenKey(state string) (*Key, error) {
	k, err := ReadKey(state)
	if errors.Is(err, os.ErrNotExist) {
		if err := makeKey(state, filepath.Join(state, keyFile)); err != nil {
			return nil, fmt.Errorf("the audit key: %w", err)
		}
		return ReadKey(state)
	}
	return k, err
}

// ReadKey reads the key in an executor's state folder.
func ReadKey(state string) (*Key, error) {
	path := filepath.Join(state, keyFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the audit key: %w", err)
	}
	private, public, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	signer, err := note.NewSigner(private)
	if err == nil {
		_, err = note.NewVerifier(public)
	}
	if err != nil {
		return nil, fmt.Errorf("the audit key %s is damaged: %w", path, err)
	}
	sum := sha256.Sum256([]byte("redact\n" + private))
	return &Key{signer: signer, public: public, redact: redact.New(sum[:])}, nil
}

func makeKey(state, path string) error {
	private, public, err := note.GenerateKey(rand.Reader, "harness-executor")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(state, "key") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(private + "\n" + public + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
