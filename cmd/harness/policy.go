package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

type policyCmd struct {
	Check   policyCheck  `cmd:"" help:"allow, ask or deny, for a command."`
	Explain policyCheck  `cmd:"" help:"The same, with the part and the rule."`
	Test    policyTest   `cmd:"" help:"Try the examples that rules carry."`
	Import  policyImport `cmd:"" help:"Translate rules of Claude Code (settings.json) and codex (*.rules)."`
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
	d := p.Judge(policy.Request{Action: contract.RunCommand, Cmd: c.Cmd, Cwd: dir, Sandboxed: true}).Decision
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

type policyTest struct {
	policyFlags
	Dir string `short:"C" name:"cd" default:"." help:"The folder." placeholder:"DIR"`
}

func (c *policyTest) Run() error {
	dir, err := folder(c.Dir)
	if err != nil {
		return &exit{42, err}
	}
	o := c.options(dir)
	o.Examples = true
	p, err := policy.Load(o)
	if err != nil {
		return &exit{52, err}
	}
	for _, s := range p.Sources() {
		fmt.Println(s)
	}
	bad, list := 0, p.Examples()
	for _, e := range list {
		if !e.Holds {
			bad++
			fmt.Println(e)
		}
	}
	fmt.Printf("%d examples, %d of them wrong\n", len(list), bad)
	if bad > 0 {
		return &exit{1, nil}
	}
	return nil
}

type policyImport struct {
	Files []string `arg:"" optional:"" help:"Files; without any, those of this folder and the home." placeholder:"FILE"`
	Write string   `help:"Write a new policy file instead of printing it." placeholder:"FILE"`
}

// otherRules is where other agents keep theirs.
func otherRules() (files []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	for _, pattern := range []string{".claude/settings.json", ".claude/settings.local.json", filepath.Join(home, ".claude/settings.json"),
		".codex/rules/*.rules", filepath.Join(home, ".codex/rules/*.rules"), filepath.Join(home, ".codex/policy/*.codexpolicy")} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	return files
}

func (c *policyImport) Run() error {
	if c.Files == nil {
		c.Files = otherRules()
	}
	if c.Files == nil {
		return &exit{42, errors.New("there are no rules of another agent here or in the home; name a file")}
	}
	all := &policy.Imported{}
	for _, file := range c.Files {
		data, err := os.ReadFile(file)
		if err != nil {
			return &exit{42, err}
		}
		x, err := policy.Import(file, data)
		if err != nil {
			return &exit{42, err}
		}
		all.Add(x)
	}
	for _, n := range all.Notes {
		fmt.Fprintln(os.Stderr, n)
	}
	if c.Write == "" {
		fmt.Print(all.TOML())
		return nil
	}
	f, err := os.OpenFile(c.Write, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &exit{42, fmt.Errorf("%s is there already; nothing was written", c.Write)}
	}
	if err != nil {
		return &exit{42, err}
	}
	_, err = f.WriteString(all.TOML())
	return errors.Join(err, f.Close())
}
