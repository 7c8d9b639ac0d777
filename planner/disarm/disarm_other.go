//go:build !linux

package disarm

import "errors"

// Disarm can enforce nothing on this system.
func Disarm(writable ...string) error {
	return errors.Join(Missing{"no exec: needs Linux", "no write: needs Linux"}, errors.ErrUnsupported)
}

// Probe reports that nothing is refused.
func Probe() (execRefused, writeRefused bool) { return false, false }
