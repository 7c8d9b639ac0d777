//go:build unix

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func lock(dir, id string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "locks", id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("session %s is open in another process", id)
	}
	return f, nil
}
