// Package terminal is the surface for people: each step in a line as it
// happens, its output below, the check red or green, questions where the policy
// asks. Where there is no terminal it shows the same without colour and says no
// to every question.
package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	v1 "harness/contract/harness/v1"
	"harness/planner/session"
)

// Surface shows to W. In is where answers come from, nil where nobody is there.
type Surface struct {
	W      io.Writer
	In     *bufio.Reader
	Colour bool
	Quiet  bool
	Yes    bool // answer every question with yes
	mu     sync.Mutex
	midway bool // the cursor stands in a line
	shown  map[string]int
	answer chan answer // of a read that a question left behind
}

const maxShownLines = 40

// The colours, by what they say.
const (
	red, green, yellow, dim, bold = "31", "32", "33", "2", "1"
)

func (s *Surface) paint(colour, text string) string {
	if !s.Colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// line writes one whole line.
func (s *Surface) line(text string) {
	if s.midway {
		fmt.Fprintln(s.W)
		s.midway = false
	}
	fmt.Fprintln(s.W, text)
}

type eventData struct {
	Item struct {
		Type         string
		Step, Result json.RawMessage
		Plan         []struct{ Text, Status string }
	}
	Check                 json.RawMessage // true of a step that is the check; in session.started its command
	Verdict, Cmd, Message string
	Failing               []string
	Workspace, Model      string
	SessionID             string  `json:"session_id"`
	RetryIn               float64 `json:"retry_in_s"`
	Error                 string
}

// Event shows one event.
func (s *Surface) Event(e session.Event) {
	if s.Quiet {
		return
	}
	var d eventData
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case "session.started":
		var check string
		if json.Unmarshal(d.Check, &check) != nil || check == "" {
			check = "none found"
		}
		s.line(s.paint(dim, fmt.Sprintf("session %s · %s · %s · check: %s", d.SessionID, Safe(d.Model), Safe(d.Workspace), Safe(check))))
	case "item.started":
		s.step(d)
	case "item.completed":
		for _, i := range d.Item.Plan {
			mark := map[string]string{"done": "✓", "in_progress": "▸"}[i.Status]
			s.line(s.paint(dim, fmt.Sprintf("  %1s %s", mark, Safe(oneLine(i.Text)))))
		}
		s.result(d)
	case "approval.decided":
		s.decided(e.Data)
	case "check.completed":
		s.verdict(d)
	case "error", "turn.failed":
		text := d.Message
		if text == "" {
			text = d.Error
		}
		if d.RetryIn > 0 {
			text += fmt.Sprintf("; again in %.1f s", d.RetryIn)
		}
		s.line(s.paint(red, "! "+Safe(text)))
	case "warning":
		s.line(s.paint(yellow, "! "+Safe(d.Message)))
	}
}

// step is one line that says what is about to run.
func (s *Surface) step(d eventData) {
	step := new(v1.Step)
	if d.Item.Step == nil || protojson.Unmarshal(d.Item.Step, step) != nil {
		return
	}
	mark := "●"
	if string(d.Check) == "true" {
		mark = "✓?"
	}
	s.line(s.paint(bold, mark+" "+step.Action) + " " + Safe(brief(step)))
}

// brief is a step's arguments in one line.
func brief(step *v1.Step) string {
	f := step.GetArgs().GetFields()
	for _, name := range []string{"cmd", "path", "pattern", "glob", "target"} {
		if v := f[name].GetStringValue(); v != "" {
			if name == "pattern" && f["path"].GetStringValue() != "" {
				v += " in " + f["path"].GetStringValue()
			}
			return oneLine(v)
		}
	}
	if p := f["patch"].GetStringValue(); p != "" {
		return oneLine(p)
	}
	return ""
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		s = string(r[:160]) + "…"
	}
	return s
}

func (s *Surface) result(d eventData) {
	r := new(v1.StepResult)
	if d.Item.Result == nil || protojson.Unmarshal(d.Item.Result, r) != nil {
		return
	}
	if r.Action == "run_command" && s.shown[r.StepId] == 0 || r.Action == "diff" {
		s.output(r.StepId, r.GetOutput().GetText())
	}
	delete(s.shown, r.StepId)
	var parts []string
	if r.ExitCode != nil && *r.ExitCode != 0 {
		parts = append(parts, fmt.Sprintf("exit code %d", *r.ExitCode))
	} else if r.Error != nil {
		parts = append(parts, r.Error.Message)
	}
	if n := r.GetChanges().GetTotal(); n > 0 {
		names := []string{}
		for _, c := range r.Changes.Changes[:min(3, len(r.Changes.Changes))] {
			names = append(names, c.Kind.String()+" "+c.Path)
		}
		text := strings.Join(names, ", ")
		if int(n) > len(names) {
			text += fmt.Sprintf(" and %d more", int(n)-len(names))
		}
		parts = append(parts, text)
	}
	parts = append(parts, r.Notes...)
	colour := dim
	if r.Status != v1.Status_ok {
		colour = yellow
		parts = append([]string{strings.ReplaceAll(r.Status.String(), "_", " ")}, parts...)
	}
	if len(parts) > 0 {
		s.line(s.paint(colour, "  → "+oneLine(Safe(strings.Join(parts, "; ")))))
	}
}

func (s *Surface) verdict(d eventData) {
	switch d.Verdict {
	case "proven":
		s.line(s.paint(green, "✔ check green: "+Safe(d.Cmd)))
	case "red":
		text := "✘ check red: " + Safe(d.Cmd)
		if len(d.Failing) > 0 {
			text += " (" + Safe(strings.Join(d.Failing[:min(5, len(d.Failing))], ", ")) + ")"
		}
		s.line(s.paint(red, text))
	default:
		if d.Cmd == "" {
			s.line(s.paint(yellow, "? no check: nothing proves the result"))
		}
	}
}

// Delta shows the model's words as they come.
func (s *Surface) Delta(text, _ string) {
	if s.Quiet || text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text = Safe(text)
	fmt.Fprint(s.W, text)
	s.midway = !strings.HasSuffix(text, "\n")
}

// Output shows what a running command prints, the first lines of it.
func (s *Surface) Output(stepID, text string) {
	if s.Quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output(stepID, text)
}

func (s *Surface) output(stepID, text string) {
	if s.shown == nil {
		s.shown = map[string]int{}
	}
	for line := range strings.Lines(text) {
		n := s.shown[stepID]
		s.shown[stepID]++
		switch {
		case n < maxShownLines:
			s.line(s.paint(dim, "  │ "+Safe(strings.TrimRight(line, "\n"))))
		case n == maxShownLines:
			s.line(s.paint(dim, "  │ …"))
		}
	}
}

// Ask puts a held step to the person.
func (s *Surface) Ask(ctx context.Context, a *v1.Approval) (*v1.DecideRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &v1.DecideRequest{Answer: v1.DecideRequest_deny, Surface: "terminal"}
	if s.Yes {
		d.Answer, d.Surface = v1.DecideRequest_allow, "--yes"
		return d, nil
	}
	if s.In == nil {
		d.Message = "nobody is there to be asked"
		return d, nil
	}
	s.line(s.paint(yellow, "? "+Safe(a.Summary)))
	if r := a.GetDecision().GetReason(); r != "" {
		s.line("  " + Safe(r))
	}
	always := ""
	if a.Rule != "" {
		always = " · [a]lways, saves the rule " + Safe(a.Rule)
	}
	for {
		fmt.Fprint(s.W, "  [y]es once · for this [s]ession"+always+" · [n]o, with a word for the model: ")
		answer, err := s.read(ctx)
		if err != nil {
			s.line("")
			d.Message = "the terminal was closed"
			if ctx.Err() != nil {
				d.Message = "the question was interrupted"
			}
			return d, nil
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(answer), " ")
		switch strings.ToLower(word) {
		case "y", "yes", "o", "once":
			d.Answer = v1.DecideRequest_allow
		case "s", "session":
			d.Answer, d.Scope = v1.DecideRequest_allow, v1.DecideRequest_session
		case "a", "always":
			if a.Rule == "" {
				continue
			}
			d.Answer, d.Scope = v1.DecideRequest_allow, v1.DecideRequest_always
		case "n", "no":
			d.Message = rest
		default:
			continue
		}
		return d, nil
	}
}

// decided says who answered a question where it was not the person here.
func (s *Surface) decided(data json.RawMessage) {
	var d struct{ Answer, Approver, Surface, Message string }
	if json.Unmarshal(data, &d) != nil || d.Surface == "terminal" || d.Surface == "--yes" {
		return
	}
	answer := "denied"
	if d.Answer == "allow" {
		answer = "allowed"
	}
	if d.Approver != "" {
		answer += " by " + d.Approver
	}
	s.line(s.paint(dim, "  "+Safe(answer+" ("+d.Surface+") "+d.Message)))
}

// Question asks the person something.
func (s *Surface) Question(ctx context.Context, text string) (string, error) {
	if s.In == nil {
		return "", errors.New("nobody is there to be asked")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(s.paint(yellow, "? "+Safe(text)))
	fmt.Fprint(s.W, "  ")
	answer, err := s.read(ctx)
	return strings.TrimSpace(answer), err
}

// Diff shows a unified diff.
func (s *Surface) Diff(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(text) {
		line = Safe(strings.TrimRight(line, "\n"))
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			line = s.paint(bold, line)
		case strings.HasPrefix(line, "+"):
			line = s.paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = s.paint(red, line)
		}
		s.line(line)
	}
}
