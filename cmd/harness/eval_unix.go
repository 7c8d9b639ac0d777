//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

const endSignal = syscall.SIGTERM

// aside keeps a terminal's Ctrl-C from a child: who started it ends it.
func aside(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
