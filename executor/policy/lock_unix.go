//go:build unix

package policy

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder waits until nobody else changes files of a folder. The lock is the
// folder's own: no file is left behind, and none can be put in its place.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
