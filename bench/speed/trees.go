//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"harness/contract"
)

// searching is a search of the Go source tree against ripgrep's.
func searching(program string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	rg, err := exec.LookPath("rg")
	if err != nil {
		fmt.Println("search: ripgrep is not installed, nothing to compare with")
		return nil
	}
	c, err := start(program, src)
	if err != nil {
		return err
	}
	defer c.stop()
	for _, pattern := range []string{`func \(c \*Client\) Do`, `zzz[a-z]+nowhere`, `[A-Z]\w+Error\b`} {
		ours, err := c.timed(9, contract.Search, map[string]any{"pattern": pattern})
		if err != nil {
			return err
		}
		var all []time.Duration
		for range 9 {
			begin := time.Now()
			exec.Command(rg, "-n", "--no-messages", pattern, src).Run() // 1 is no match
			all = append(all, time.Since(begin))
		}
		theirs := median(all)
		fmt.Printf("search %s in the Go tree: %.1f ms; rg: %.1f ms; ratio %.2f (goal 2)\n", pattern, ms(ours), ms(theirs), float64(ours)/float64(theirs))
	}
	return nil
}

// crowd is a shell step that changes a file in a tree of 100,000.
func crowd(tmp, program string) error {
	ws := filepath.Join(tmp, "crowd")
	for d := range 1000 {
		dir := filepath.Join(ws, fmt.Sprintf("d%03d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for f := range 100 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", f)), []byte("text\n"), 0o644); err != nil {
				return err
			}
		}
	}
	c, err := start(program, ws)
	if err != nil {
		return err
	}
	defer c.stop()
	const command = "echo more >> d500/f50; rm -f d501/f51; mkdir -p new; echo x > new/x"
	var all []time.Duration
	for range 20 {
		begin := time.Now()
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = ws
		if err := cmd.Run(); err != nil {
			return err
		}
		all = append(all, time.Since(begin))
	}
	plain := median(all)
	first, err := c.timed(1, contract.RunCommand, map[string]any{"cmd": command})
	if err != nil {
		return err
	}
	later, err := c.timed(20, contract.RunCommand, map[string]any{"cmd": command})
	if err != nil {
		return err
	}
	fmt.Printf("a changing step among 100,000 files: overhead %.1f ms first (goal 100), %.1f ms after (goal 30); plain: %.1f ms\n", ms(first-plain), ms(later-plain), ms(plain))
	return nil
}
