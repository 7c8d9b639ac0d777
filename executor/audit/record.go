package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/redact"
)

// Kind is what a record is about.
type Kind string

const (
	Opened    Kind = "session.opened"   // workspace, capabilities in force, policy
	Policy    Kind = "policy.changed"   // another policy counts from here on
	Started   Kind = "step.started"     // allowed, about to run
	Asked     Kind = "approval.asked"   // held
	Decided   Kind = "approval.decided" // answered
	Program   Kind = "program"          // started by a step, or refused
	Connected Kind = "connection"       // made by a step, or refused
	Finished  Kind = "step.finished"    // the outcome, with what changed
	Refused   Kind = "step.refused"     // denied, or not valid: it does not run
	Recovered Kind = "log.recovered"    // what a crash left was put right
)

// Record is one line. Which fields are set depends on Kind.
type Record struct {
	N    int64     `json:"n"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	Step string    `json:"step,omitempty"`

	Waived []string `json:"waived,omitempty"` // what was not in force, by the admin's leave: sandbox, asking

	Action   string         `json:"action,omitempty"`
	Digest   string         `json:"digest,omitempty"` // of the step, or of what an approval is bound to
	Args     map[string]any `json:"args,omitempty"`
	Decision *Decision      `json:"decision,omitempty"`

	Status   string   `json:"status,omitempty"`
	Error    string   `json:"error,omitempty"`
	ExitCode *int32   `json:"exit_code,omitempty"`
	Signal   string   `json:"signal,omitempty"`
	Limit    string   `json:"limit,omitempty"`
	Output   string   `json:"output,omitempty"` // digest of the kept output
	WallMS   float64  `json:"wall_ms,omitempty"`
	CPUMS    float64  `json:"cpu_ms,omitempty"`
	Changes  []Change `json:"changes,omitempty"`
	Total    uint32   `json:"changes_total,omitempty"` // where Changes is not all

	Began    string   `json:"began,omitempty"` // a program or a connection; the record comes with the step's end
	Program  string   `json:"program,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	Cwd      string   `json:"cwd,omitempty"`
	Host     string   `json:"host,omitempty"`
	Port     uint32   `json:"port,omitempty"`
	Protocol string   `json:"protocol,omitempty"`
	Address  string   `json:"address,omitempty"`
	Sent     uint64   `json:"sent_bytes,omitempty"`
	Received uint64   `json:"received_bytes,omitempty"`

	Approval string `json:"approval,omitempty"`
	Answer   string `json:"answer,omitempty"`
	Approver string `json:"approver,omitempty"`
	Surface  string `json:"surface,omitempty"`
	Scope    string `json:"scope,omitempty"`

	Planner      string   `json:"planner,omitempty"`
	Executor     string   `json:"executor,omitempty"`
	Workspace    string   `json:"workspace,omitempty"`
	Rung         string   `json:"rung,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // in force
	Missing      []string `json:"missing,omitempty"`      // not in force
	Policy       string   `json:"policy,omitempty"`       // its version
	Sources      []string `json:"sources,omitempty"`      // its files
	Note         string   `json:"note,omitempty"`
}

// Decision is a verdict and what made it.
type Decision struct {
	Verdict string `json:"verdict"`
	Rule    string `json:"rule,omitempty"`
	Source  string `json:"source,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Part    string `json:"part,omitempty"`
}

// Change is one path that a step changed.
type Change struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Digest string `json:"digest,omitempty"`
	Size   uint64 `json:"size,omitempty"`
}

// maxText is how much of one text a record keeps: enough to know it by, the
// digest of the step or of the output stands for the rest.
const maxText = 4 << 10

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// Step is the record of a step as it was asked for: it begins, is refused or is held.
func Step(kind Kind, step *v1.Step, digest string, d *v1.Decision) Record {
	return Record{Kind: kind, Step: step.StepId, Action: step.Action, Digest: digest, Args: args(step), Decision: decision(d)}
}

func args(step *v1.Step) map[string]any {
	m := step.GetArgs().AsMap()
	for k, v := range m {
		switch v := v.(type) {
		case string:
			m[k] = cut(v)
		case map[string]any:
			if step.Action == contract.CallMCPTool {
				text, _ := json.Marshal(v)
				m[k] = cut(string(text))
				continue
			}
			// the environment: names are enough
			m[k] = slices.Sorted(maps.Keys(v))
		}
	}
	return m
}

func decision(d *v1.Decision) *Decision {
	if d == nil {
		return nil
	}
	return &Decision{Verdict: d.Verdict.String(), Rule: d.Rule, Source: d.Source, Reason: cut(d.Reason), Part: cut(d.Part)}
}

// Result is the records of a step's end: its programs, its connections, its outcome.
func Result(r *v1.StepResult) []Record {
	records := make([]Record, 0, len(r.Execs)+len(r.Connections)+1)
	for _, e := range r.Execs {
		argv := make([]string, len(e.Argv))
		for i, a := range e.Argv {
			argv[i] = cut(a)
		}
		records = append(records, Record{Kind: Program, Step: r.StepId, Began: began(e.Started), Program: e.Program, Argv: argv, Cwd: e.Cwd,
			ExitCode: e.ExitCode, WallMS: e.WallMs, CPUMS: e.CpuMs, Decision: decision(e.Refused)})
	}
	for _, c := range r.Connections {
		records = append(records, Record{Kind: Connected, Step: r.StepId, Began: began(c.Started), Host: c.Host, Port: c.Port, Protocol: c.Protocol,
			Address: c.Address, Sent: c.SentBytes, Received: c.ReceivedBytes, Decision: decision(c.Refused)})
	}
	end := Record{Kind: Finished, Step: r.StepId, Action: r.Action, Status: r.Status.String(), Error: cut(r.GetError().GetMessage()),
		ExitCode: r.ExitCode, Signal: r.Signal, Limit: r.Limit, Output: r.GetOutput().GetArtifact(), Decision: decision(r.Decision),
		WallMS: r.GetUsage().GetWallMs(), CPUMS: r.GetUsage().GetCpuMs()}
	for _, c := range r.GetChanges().GetChanges() {
		end.Changes = append(end.Changes, Change{Kind: c.Kind.String(), Path: c.Path, Digest: c.DigestAfter, Size: c.SizeAfter})
	}
	if t := r.GetChanges().GetTotal(); int(t) > len(end.Changes) {
		end.Total = t
	}
	return append(records, end)
}

func began(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// Question is the record of a step that is held.
func Question(step *v1.Step, a *v1.Approval) Record {
	r := Step(Asked, step, a.Digest, a.Decision)
	r.Approval = a.ApprovalId
	return r
}

// Answer is the record of the answer that holds.
func Answer(stepID string, d *v1.DecideRequest) Record {
	return Record{Kind: Decided, Step: stepID, Approval: d.ApprovalId, Digest: d.Digest, Answer: d.Answer.String(), Approver: d.Approver,
		Surface: d.Surface, Scope: d.Scope.String(), Note: cut(d.Message)}
}

// Session is the record of a session that was opened.
func Session(planner string, o *v1.OpenResponse, policy string) Record {
	r := Record{Kind: Opened, Planner: planner, Executor: o.Executor, Workspace: o.Workspace, Rung: o.Rung, Policy: policy, Sources: o.Policy}
	for _, c := range o.Capabilities {
		if c.Enforced {
			r.Capabilities = append(r.Capabilities, c.Name)
		} else {
			r.Missing = append(r.Missing, c.Name)
		}
	}
	return r
}

// line is a record as it stands in the log: without secrets.
func (k *Key) line(r Record) ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil || !redact.Suspect(line) {
		return line, err
	}
	k.redact.Value(&r) // not the line: an escape next to a secret would hide it
	return json.Marshal(r)
}
