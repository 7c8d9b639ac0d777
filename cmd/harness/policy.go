package main

import (
	"fmt"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

type policyCmd struct {
	Check   policyCheck `cmd:"" help:"allow, ask or deny, for a command."`
	Explain policyCheck `cmd:"" help:"The same, with the part and the rule."`
}

type policyCheck struct {
	policyFlags
	Cmd string `arg:"" help:"The command line."`
	Dir string `short:"C" name:"cd" default:"." help:"The folder." placeholder:"DIR"`
}

func (c *policyCheck) Run() error {
	dir, err := folder(c.Dir)
	if err != nil {
		return &exit{42, err}
	}
	o := c.options(dir)
	p, err := policy.Load(o)
	if err != nil {
		return &exit{52, err}
	}
	d := p.Judge(policy.Request{Action: contract.RunCommand, Cmd: c.Cmd, Cwd: dir}).Decision
	fmt.Println(d.Verdict)
	for _, l := range [][2]string{{"reason", d.Reason}, {"part", d.Part}, {"rule", d.Rule}, {"from", d.Source}} {
		if l[1] != "" {
			fmt.Printf("  %-7s %s\n", l[0], l[1])
		}
	}
	if d.Verdict == v1.Decision_deny {
		return &exit{1, nil}
	}
	return nil
}
