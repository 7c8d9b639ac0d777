//go:build unix

package executor

import (
	"os"
	"path/filepath"
	"syscall"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// takeLease locks a session's folder for this process; it is let go when the
// file closes or the process ends, however it ends.
func takeLease(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lease"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, contract.Errorf(v1.Error_unavailable, "the lease: %v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, contract.Errorf(v1.Error_unavailable, "another executor holds the session %s", filepath.Base(dir)).
			WithHint("end that one first")
	}
	return f, nil
}
