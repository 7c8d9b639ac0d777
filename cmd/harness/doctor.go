package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	v1 "harness/contract/harness/v1"
	"harness/planner/disarm"
)

type doctorCmd struct {
	Probe bool `hidden:"" help:"Disarm this process and try."`
}

func (c *doctorCmd) Run() error {
	if c.Probe {
		return probe()
	}
	dir, err := os.MkdirTemp("", "harness-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = folder(dir); err != nil {
		return err
	}
	x, stop, err := startExecutor(dir, policyFlags{})
	if err != nil {
		return &exit{44, err}
	}
	defer stop()
	o, err := open(context.Background(), x, stop, &v1.OpenRequest{Planner: version})
	if err != nil {
		return err
	}
	fmt.Println("executor sandbox:", o.Rung)
	for _, k := range o.Capabilities {
		mark := "yes"
		if !k.Enforced {
			mark = "NO "
		}
		fmt.Printf("  %s  %-20s %s\n", mark, k.Name, k.Detail)
	}
	fmt.Println("planner, after it disarmed itself:")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := exec.Command(self, "doctor", "--probe").CombinedOutput()
	fmt.Print(string(out))
	armed := err != nil
	if armed {
		fmt.Println("  NO   the planner could not be disarmed here")
	}
	fmt.Println("policy:")
	for _, s := range o.Policy {
		fmt.Println("  " + s)
	}
	fmt.Println("model keys:")
	for _, k := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"} {
		if os.Getenv(k) != "" {
			fmt.Println("  " + k + " is set")
		}
	}
	fmt.Println("state:", stateDir())
	if !o.MeetsMinimum {
		return &exit{44, errors.New("no command will run here: " + missing(o.Capabilities))}
	}
	if armed {
		return &exit{1, errors.New("a planner keeps rights here that it should not have; Landlock and seccomp take them, on Linux 5.13 or later")}
	}
	return nil
}

func missing(list []*v1.Capability) string {
	var names []string
	for _, k := range list {
		if !k.Enforced {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// probe disarms this very process as a planner does, and tries what it must not be able to do.
func probe() error {
	if err := os.MkdirAll(sessionsDir(), 0o700); err != nil {
		return err
	}
	if err := disarm.Disarm(sessionsDir()); err != nil {
		fmt.Println("  NO  ", err)
	}
	noExec, noWrite := disarm.Probe()
	for name, ok := range map[string]bool{"starting a program is refused": noExec, "writing outside the session store is refused": noWrite} {
		mark := "yes"
		if !ok {
			mark = "NO "
		}
		fmt.Printf("  %s  %s\n", mark, name)
	}
	if !noExec || !noWrite {
		return &exit{1, nil}
	}
	return nil
}
