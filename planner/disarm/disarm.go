// Package disarm takes from this process, through the kernel and for good, the
// rights that thinking does not need: to start programs, and to write files
// anywhere but in the folders that are named.
//
// Call Disarm once, after the executor was started and before a model is
// asked. It holds for all threads, those of now and those to come. Reading and
// the network stay. Probe tries what must fail.
package disarm

import "strings"

// Missing is what could not be enforced; the rest is in force.
type Missing []string

func (m Missing) Error() string {
	return "not enforced in this process: " + strings.Join(m, "; ")
}
