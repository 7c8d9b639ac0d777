//go:build linux

// Command gate measures what the exec gate costs: the same command in the
// sandbox with its programs judged and without, by turns in one run:
//
//	go run ./bench/gate
//
// It prints the fastest of each and their ratio; nothing is asserted.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
	"harness/executor/sandbox"
)

// works start about 1,000 programs each; the first is nothing but that.
var works = []struct{ name, prepare, line string }{
	{"a loop of 1,000 programs that do nothing", "", `i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done`},
	{"make of 1,000 small steps", `(printf 'all:'; for i in $(seq 1000); do printf ' o%d' $i; done; printf '\no%%:\n\t@cp Makefile $@\n') > Makefile`, `make -s -j2`},
	{"a C build of 1,000 programs", `for i in $(seq 333); do printf '#include <stdio.h>\nint f%d(void) { return printf("%%d", %d); }\n' $i $i > f$i.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\t@cc -c -O1 -o $@ $<\n' > Makefile`, `make -s -j2`},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "__hands" {
		sandbox.HandsMain()
	}
	turns := flag.Int("n", 5, "turns")
	flag.Parse()
	for _, w := range works {
		if err := measure(w.name, w.prepare, w.line, *turns); err != nil {
			fmt.Fprintln(os.Stderr, "gate:", err)
			os.Exit(1)
		}
	}
}

func measure(name, prepare, line string, turns int) error {
	base, err := os.MkdirTemp("/var/tmp", "harness-gate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	ws := filepath.Join(base, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		return err
	}
	s, err := sandbox.Start(context.Background(), sandbox.Config{Workspace: ws, State: filepath.Join(base, "state"), Home: filepath.Join(base, "home")})
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := policy.Load(policy.Options{Workspace: ws, Deny: []string{"Bash(git push:*)", "Bash(rm -rf /:*)", "Bash(curl:*)"}})
	if err != nil {
		return err
	}
	suspects := sandbox.Suspects(p.Suspects())
	judged := func(x sandbox.Program) (*v1.Decision, bool) { return p.Exec(policy.Program(x)) }
	var with, without []time.Duration
	programs := 0
	for i := range 2 * turns {
		gate := sandbox.Gate(judged)
		if i%2 == 0 {
			gate = nil
		}
		exit, err := run(s, filepath.Join(base, "layers", fmt.Sprint(i)), ws, prepare, line, gate, &suspects)
		if err != nil {
			return err
		}
		if gate == nil {
			without = append(without, exit.Wall)
		} else {
			with, programs = append(with, exit.Wall), exit.ExecsTotal
		}
	}
	a, b := fastest(without), fastest(with)
	fmt.Printf("%s: %d programs: without the gate %.0f ms, with it %.0f ms: %+.1f %%, %.0f µs a program\n", name, programs,
		a.Seconds()*1e3, b.Seconds()*1e3, 100*(b.Seconds()/a.Seconds()-1), (b-a).Seconds()*1e6/float64(programs))
	return nil
}

// run does the work in a fresh layer; what prepares it is not timed.
func run(s *sandbox.Sandbox, layer, ws, prepare, line string, gate sandbox.Gate, suspects *sandbox.Suspects) (*sandbox.Exit, error) {
	var exit *sandbox.Exit
	c := sandbox.Command{Dir: ws, Suspects: suspects, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Upper: filepath.Join(layer, "upper"), Work: filepath.Join(layer, "work")}
	for _, d := range []string{c.Upper, c.Work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, x := range []struct {
		line string
		gate sandbox.Gate
	}{{prepare, nil}, {line, gate}} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		text := make(chan string)
		go func() {
			out, _ := io.ReadAll(r)
			text <- string(out)
		}()
		c.Argv, c.Gate, c.Output = []string{"/bin/sh", "-c", x.line}, x.gate, w
		exit, err = s.Run(context.Background(), c)
		w.Close()
		out := <-text
		r.Close()
		if err != nil {
			return nil, err
		}
		if exit.Code != 0 {
			return nil, fmt.Errorf("%s: exit code %d: %s", x.line, exit.Code, out)
		}
	}
	return exit, nil
}

// fastest is the least disturbed by whatever else the machine does.
func fastest(all []time.Duration) time.Duration {
	return slices.Min(all)
}
