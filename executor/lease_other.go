//go:build !unix

package executor

import (
	"os"
	"path/filepath"
)

// takeLease only opens the file: no step runs on this system, see package sandbox.
func takeLease(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lease"), os.O_RDWR|os.O_CREATE, 0o600)
}
