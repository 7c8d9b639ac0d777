// Package artifact keeps what steps gave out: the whole of a long output, a
// report, a log. Each is a file named by its digest below one folder, written
// whole before it has that name, and never changed.
package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Store is a folder of artifacts.
type Store struct{ dir string }

// Open makes the folder where it is missing, and removes what a crash left half written.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	stray, err := filepath.Glob(filepath.Join(dir, "new-*"))
	if err != nil {
		return nil, err
	}
	for _, f := range stray {
		os.Remove(f)
	}
	return &Store{dir}, nil
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func (s *Store) path(digest string) string {
	hex := digest[len("sha256:"):]
	return filepath.Join(s.dir, hex[:2], hex)
}

// Get opens an artifact. A name that is no digest is os.ErrNotExist.
func (s *Store) Get(digest string) (*os.File, error) {
	if !isDigest(digest) {
		return nil, fmt.Errorf("artifact %q: %w", digest, os.ErrNotExist)
	}
	return os.Open(s.path(digest))
}

// Put keeps what r gives, up to limit bytes, and says its digest and size.
func (s *Store) Put(r io.Reader, limit int64) (digest string, size int64, err error) {
	w, err := s.create()
	if err != nil {
		return "", 0, err
	}
	if size, err = io.Copy(w, io.LimitReader(r, limit+1)); err == nil && size > limit {
		err = fmt.Errorf("over the limit of %d bytes", limit)
	}
	if err != nil {
		w.abandon()
		return "", 0, err
	}
	digest, err = w.keep()
	return digest, size, err
}

// writer is an artifact on its way: its digest is known when it is whole.
type writer struct {
	s *Store
	f *os.File
	h hash.Hash
}

func (s *Store) create() (*writer, error) {
	f, err := os.CreateTemp(s.dir, "new-")
	if err != nil {
		return nil, err
	}
	return &writer{s, f, sha256.New()}, nil
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.h.Write(b[:n])
	return n, err
}

func (w *writer) keep() (digest string, err error) {
	digest = "sha256:" + hex.EncodeToString(w.h.Sum(nil))
	to := w.s.path(digest)
	err = errors.Join(w.f.Close(), os.MkdirAll(filepath.Dir(to), 0o700))
	if err == nil {
		err = os.Rename(w.f.Name(), to)
	}
	if err != nil {
		os.Remove(w.f.Name())
		return "", err
	}
	return digest, nil
}

func (w *writer) abandon() {
	w.f.Close()
	os.Remove(w.f.Name())
}
