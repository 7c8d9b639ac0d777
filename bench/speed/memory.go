//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// peaks is the peak resident memory, in kB, of a program's processes by the role in their arguments.
type peaks map[string]int

func (p peaks) String() string {
	total := 0
	var parts []string
	for _, role := range []string{"run", "executor", "__hands"} {
		if kb, ok := p[role]; ok {
			total += kb
			parts = append(parts, fmt.Sprintf("%s %d", role, kb>>10))
		}
	}
	return fmt.Sprintf("%d MB (%s)", total>>10, strings.Join(parts, ", "))
}

// watch runs the program and samples the high-water mark of it and of its own processes below it.
func watch(program string, args ...string) (peaks, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := peaks{}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		sample(cmd.Process.Pid, p)
		select {
		case <-done: // a run without a check ends with a code of its own
			return p, nil
		case <-time.After(time.Millisecond):
		}
	}
}

func sample(pid int, p peaks) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return
	}
	argv := strings.Split(string(line), "\x00")
	if len(argv) < 2 {
		return
	}
	switch argv[1] {
	case "run", "executor", "__hands":
		p[argv[1]] = max(p[argv[1]], highWater(pid))
	default:
		return // a command that runs
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		data, _ := os.ReadFile(l)
		for _, f := range strings.Fields(string(data)) {
			var child int
			if _, err := fmt.Sscan(f, &child); err == nil {
				sample(child, p)
			}
		}
	}
}

func highWater(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb
		}
	}
	return 0
}

// flood is a run of a command that prints 1 GB.
func flood(tmp, program, ws string) error {
	rec := filepath.Join(tmp, "flood.jsonl")
	call := `{"calls":[{"name":"run_command","args":{"cmd":"head -c 1000000000 /dev/zero","timeout_s":300}}]}`
	if err := os.WriteFile(rec, []byte(call+"\n"+`{"text":"Done."}`+"\n"), 0o644); err != nil {
		return err
	}
	begin := time.Now()
	p, err := watch(program, "run", "-q", "--auto", "-C", ws, "-m", "recorded:"+rec, "print a lot")
	fmt.Printf("1 GB of output, peak memory: %v, in %.1f s (goal, both processes, 80 MB)\n", p, time.Since(begin).Seconds())
	return err
}
