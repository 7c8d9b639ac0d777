//go:build !linux

package hands

import "os"

// Main ends the process: there are no hands on this system.
func Main() { os.Exit(1) }
