package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"harness/executor/audit"
	"harness/surface/terminal"
)

type auditCmd struct {
	Show   auditShow   `cmd:"" help:"Show records: steps, verdicts, approvals, programs, connections, changes."`
	Verify auditVerify `cmd:"" help:"Check the logs, and against what planners' session logs saw of them."`
	Export auditExport `cmd:"" help:"Print records as JSON lines with the names of the Elastic Common Schema."`
}

// auditQuery selects records.
type auditQuery struct {
	Session string `help:"Only this session." placeholder:"ID"`
	Step    string `help:"Only this step." placeholder:"ID"`
	Since   string `help:"Not before this time, as 2006-01-02T15:04:05Z, or so long ago, as 2h." placeholder:"TIME"`
	Until   string `help:"Not after this time." placeholder:"TIME"`
	Program string `help:"Programs of this name or path." placeholder:"NAME"`
	Path    string `help:"Records about this file or folder." placeholder:"PATH"`
	Host    string `help:"Connections to this host or domain." placeholder:"NAME"`
}

func (q auditQuery) query() (audit.Query, error) {
	a := audit.Query{Session: q.Session, Step: q.Step, Program: q.Program, Path: q.Path, Host: q.Host}
	var err error
	if a.Since, err = instant(q.Since); err == nil {
		a.Until, err = instant(q.Until)
	}
	return a, err
}

// instant is a point in time, given as such or as a duration before now.
func instant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &exit{2, fmt.Errorf("%q is no time, as 2h or 2006-01-02T15:04:05Z", text)}
}

type auditShow struct {
	auditQuery
	JSON bool `name:"json" help:"As JSON, one record a line."`
}

func (c *auditShow) Run() error {
	q, err := c.query()
	if err != nil {
		return err
	}
	if c.JSON {
		return lines(q, func(e audit.Entry) []any { return []any{e} })
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tSESSION\tSTEP\tWHAT\tVERDICT\tDETAIL")
	err = audit.Each(executorDir(), q, func(e audit.Entry) error {
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.Local().Format("2006-01-02 15:04:05"), e.Session, e.Step, e.Kind, auditVerdict(e), auditDetail(e))
		return err
	})
	return errors.Join(err, w.Flush())
}

func auditVerdict(e audit.Entry) string {
	switch {
	case e.Answer != "":
		return e.Answer
	case e.Decision != nil:
		return e.Decision.Verdict
	}
	return ""
}

// auditDetail is what a person looks for in a record, on one line.
func auditDetail(e audit.Entry) string {
	var parts []string
	add := func(format string, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add("%s", e.Status)
	add("%s", e.Action)
	for _, k := range []string{"cmd", "path"} {
		s, _ := e.Args[k].(string)
		add("%s", s)
	}
	add("%s", strings.Join(e.Argv, " "))
	if e.Host != "" {
		add("%s", fmt.Sprintf("%s:%d", e.Host, e.Port))
	}
	for _, ch := range e.Changes {
		add("%s", ch.Kind+" "+ch.Path)
	}
	add("by %s", e.Approver)
	add("via %s", e.Surface)
	add("%s", e.Note)
	add("%s", e.Error)
	if e.Decision != nil {
		add("[%s]", e.Decision.Rule)
	}
	if len(e.Waived) > 0 {
		add("WITHOUT %s", strings.Join(e.Waived, ", "))
	}
	add("sandbox %s", e.Rung)
	add("policy %s", e.Policy)
	text := []rune(strings.ReplaceAll(terminal.Safe(strings.Join(parts, " ")), "\n", "⏎"))
	if len(text) > 160 {
		text = append(text[:160], '…')
	}
	return string(text)
}

type auditExport struct{ auditQuery }

func (c *auditExport) Run() error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return lines(q, func(e audit.Entry) (out []any) {
		for _, ev := range e.ECS() {
			out = append(out, ev)
		}
		return out
	})
}

func lines(q audit.Query, of func(audit.Entry) []any) error {
	w := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(w)
	err := audit.Each(executorDir(), q, func(e audit.Entry) error {
		for _, v := range of(e) {
			if err := enc.Encode(v); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, w.Flush())
}
