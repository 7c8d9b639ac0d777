//go:build !unix

package session

import (
	"os"
	"path/filepath"
)

func lock(dir, id string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "locks", id), os.O_RDWR|os.O_CREATE, 0o600)
}
