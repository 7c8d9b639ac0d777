//go:build !linux

package sandbox

import (
	"context"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

var errOther = contract.Errorf(v1.Error_unavailable, "the sandbox needs Linux").WithHint("run the executor in a Linux container or virtual machine")

// Sandbox cannot be had on this system.
type Sandbox struct{}

// Start says that there is no sandbox on this system.
func Start(context.Context, Config) (*Sandbox, error) { return nil, errOther }

// Run says that there is no sandbox on this system.
func (s *Sandbox) Run(context.Context, Command) (*Exit, error) { return nil, errOther }

// Rung is "none".
func (s *Sandbox) Rung() string { return "none" }

// Capabilities are all missing.
func (s *Sandbox) Capabilities() []*v1.Capability { return Unavailable(errOther) }

// Direct is false.
func (s *Sandbox) Direct() bool { return false }

// MeetsMinimum is false.
func (s *Sandbox) MeetsMinimum() bool { return false }

// Close does nothing.
func (s *Sandbox) Close() error { return nil }

// HandsMain does nothing: no process is hands here.
func HandsMain() {}
