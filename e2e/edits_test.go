package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

type editCase struct {
	ID    string
	Setup struct {
		Files map[string]string
		Bash  string
	}
	Input  json.RawMessage
	Expect struct{ Verdict string }
}

// editInput is a case's tool call in neutral words.
type editInput struct {
	Tool, Path, Old, New, Content, Pattern string
	All                                    bool
	Ops                                    []struct {
		Op, Path, To, Content string
		Hunks                 []struct{ Old, New string }
	}
}

func (in editInput) step(b *bed) *v1.Step {
	switch in.Tool {
	case "replace":
		return b.step(contract.EditFile, map[string]any{"path": in.Path, "old_string": in.Old, "new_string": in.New, "replace_all": in.All})
	case "read":
		return b.step(contract.ReadFile, map[string]any{"path": in.Path})
	case "write":
		return b.step(contract.WriteFile, map[string]any{"path": in.Path, "content": in.Content})
	case "search":
		return b.step(contract.Search, map[string]any{"pattern": in.Pattern, "path": in.Path})
	case "delete":
		return b.step(contract.ApplyPatch, map[string]any{"patch": "*** Begin Patch\n*** Delete File: " + in.Path + "\n*** End Patch\n"})
	case "patch":
		return b.step(contract.ApplyPatch, map[string]any{"patch": in.patch()})
	}
	b.t.Fatalf("no tool %q", in.Tool)
	return nil
}

func (in editInput) patch() string {
	var p strings.Builder
	p.WriteString("*** Begin Patch\n")
	prefixed := func(mark, text string) {
		for line := range strings.Lines(text) {
			p.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for _, o := range in.Ops {
		switch o.Op {
		case "add":
			p.WriteString("*** Add File: " + o.Path + "\n")
			prefixed("+", o.Content)
		case "delete":
			p.WriteString("*** Delete File: " + o.Path + "\n")
		default:
			p.WriteString("*** Update File: " + o.Path + "\n")
			if o.To != "" {
				p.WriteString("*** Move to: " + o.To + "\n")
			}
			for _, h := range o.Hunks {
				p.WriteString("@@\n")
				prefixed("-", h.Old)
				prefixed("+", h.New)
			}
		}
	}
	p.WriteString("*** End Patch\n")
	return p.String()
}

type editLook func(t *testing.T, b *bed, r *v1.StepResult)

func is(path, want string) editLook {
	return func(t *testing.T, b *bed, _ *v1.StepResult) {
		t.Helper()
		if got := b.read(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func told(parts ...string) editLook {
	return func(t *testing.T, _ *bed, r *v1.StepResult) {
		t.Helper()
		contains(t, r.GetError().GetMessage()+r.GetError().GetHint()+r.GetOutput().GetText()+strings.Join(r.Notes, "\n"), parts...)
	}
}

func gone(path string) editLook {
	return func(t *testing.T, b *bed, _ *v1.StepResult) {
		t.Helper()
		if _, err := os.Lstat(filepath.Join(b.dir, path)); err == nil {
			t.Errorf("%s is there", path)
		}
	}
}

func mode(path string, want fs.FileMode) editLook {
	return func(t *testing.T, b *bed, _ *v1.StepResult) {
		t.Helper()
		info, err := os.Lstat(filepath.Join(b.dir, path))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", path, info, err, want)
		}
	}
}

const (
	fine    = v1.Status_ok
	refused = v1.Status_error
)

// editChecks is the right outcome of each case: a status, and what must be seen.
var editChecks = map[string]struct {
	status v1.Status
	looks  []editLook
}{
	"S-edt-001": {fine, []editLook{is("f.txt", "a\r\nB\r\nc\r\n")}},
	"S-edt-002": {fine, []editLook{is("f.txt", "a\r\nB\nc\r\n")}},
	"S-edt-003": {fine, []editLook{is("f.cs", "\ufeffusing Y;\nend\n")}},
	"S-edt-004": {fine, []editLook{is("Makefile", "all:\n\techo a\n\techo c\n")}},
	"S-edt-005": {refused, []editLook{is("f", "a\nb\n--\na\nb\n"), told("1, 4")}},
	"S-edt-006": {fine, []editLook{is("f", "bb\n"), told("2 places")}},
	"S-edt-007": {fine, []editLook{is("f", "a\nc\n")}},
	"S-edt-008": {refused, []editLook{is("f", "say \u201chi\u201d\n"), told("\u201chi\u201d", "quotes")}},
	"S-edt-009": {refused, []editLook{is("f", "x \u2013 y\n\u2013\n")}},
	"S-edt-010": {fine, []editLook{is("f.txt", "\xff\xfeh\x00o\x00\n\x00")}},
	"S-edt-011": {fine, []editLook{is("f.txt", "ok \xf0\x9f\x98 cut\nfin\n")}},
	"S-edt-012": {fine, []editLook{told("left out"), func(t *testing.T, _ *bed, r *v1.StepResult) {
		if n := len(r.GetOutput().GetText()); n > 70<<10 {
			t.Errorf("%d bytes come back", n)
		}
	}}},
	"S-edt-013": {refused, []editLook{is("f", "abc\n"), told("nothing would change")}},
	"S-edt-014": {refused, []editLook{is("f", ""), told("not in")}},
	"S-edt-015": {fine, []editLook{is("s", "k2\n"), mode("s", 0o600)}},
	"S-edt-016": {fine, []editLook{is("new.sh", "#!/bin/sh\n"), mode("new.sh", 0o644)}},
	"S-edt-017": {fine, []editLook{is("x", "b\n"), is("y", "b\n"), told("hard links"), func(t *testing.T, b *bed, _ *v1.StepResult) {
		b.want(b.do(contract.Restore, nil), v1.Status_ok)
		is("x", "a\n")(t, b, nil)
		is("y", "a\n")(t, b, nil)
	}}},
	"S-edt-018": {fine, []editLook{is("README.md", "a\n"), gone("Readme.md")}},
	"S-edt-019": {fine, []editLook{is("b/new.py", "x = 9\ny = 2\n"), gone("a/old.py")}},
	"S-edt-020": {refused, []editLook{told("not there")}},
	"S-edt-021": {refused, []editLook{mode("l", fs.ModeSymlink|0o777), gone("none")}},
	"S-edt-022": {v1.Status_denied, []editLook{is("a", "1\n"), gone("../x")}},
	"S-edt-024": {fine, []editLook{is("f", "ax\n")}},
	"S-edt-025": {fine, []editLook{is("f", "<<<<<<< HEAD\na\n=======\nc\n>>>>>>> x\n")}},
	"S-edt-026": {fine, []editLook{is("f", "1: one\n2: zwei\n")}},
	"S-edt-027": {fine, []editLook{is("f", "A\nb\nC\n")}},
	"S-edt-028": {refused, []editLook{is("f", "if x:\n    a()\n\nif y:\n    a()\n")}},
	"S-edt-029": {fine, []editLook{is("f", "a\rB\rc")}},
	"S-edt-031": {fine, []editLook{gone("-rf")}},
	"S-edt-032": {fine, []editLook{is("a*b?.txt", "y\n"), is("aXbY.txt", "z\n")}},
	"S-edt-033": {fine, []editLook{told("src.js", "binary")}},
	"S-edt-034": {refused, []editLook{told("regular expression")}},
}

// editStories are the cases of several steps.
var editStories = map[string]func(t *testing.T, b *bed){
	"S-edt-023": func(t *testing.T, b *bed) {
		b.want(b.do(contract.ReadFile, map[string]any{"path": "f"}), v1.Status_ok)
		b.write("f", "a\nB\n")
		edit := map[string]any{"path": "f", "old_string": "a", "new_string": "A"}
		b.want(b.do(contract.EditFile, edit), v1.Status_conflict)
		b.want(b.do(contract.ReadFile, map[string]any{"path": "f"}), v1.Status_ok)
		b.want(b.do(contract.EditFile, edit), v1.Status_ok)
		is("f", "A\nB\n")(t, b, nil)
	},
	"S-edt-030": func(t *testing.T, b *bed) {
		text := map[string]string{"1": strings.Repeat("one\n", 2000), "2": strings.Repeat("two\n", 3000)}
		x := newExecutor(t, b.dir, t.TempDir(), allowAll)
		other := &bed{t: t, dir: b.dir, x: x, id: "x2"}
		if _, err := x.Open(t.Context(), &v1.OpenRequest{SessionId: "x2"}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for who, bb := range map[string]*bed{"1": b, "2": other} {
			wg.Go(func() {
				for i := range 50 {
					step := bb.step(contract.WriteFile, map[string]any{"path": "f", "content": text[who]})
					step.StepId = fmt.Sprintf("w%s_%d", who, i)
					bb.x.Submit(t.Context(), step)
					if got, err := os.ReadFile(filepath.Join(b.dir, "f")); err != nil || string(got) != text["1"] && string(got) != text["2"] && string(got) != "a\n" {
						t.Errorf("f is no whole version: %d bytes, %v", len(got), err)
					}
				}
			})
		}
		wg.Wait()
		entries, err := os.ReadDir(b.dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("left in the folder: %v %v", entries, err)
		}
	},
}

func TestEditCases(t *testing.T) {
	f, err := os.Open("testdata/edits.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		var c editCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			b := newBed(t, allowAll, direct)
			for name, text := range c.Setup.Files {
				b.write(name, text)
			}
			if c.Setup.Bash != "" {
				cmd := exec.Command("bash", "-c", c.Setup.Bash)
				cmd.Dir = b.dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			if story := editStories[c.ID]; story != nil {
				story(t, b)
				return
			}
			check, ok := editChecks[c.ID]
			if !ok {
				t.Fatal("no check for this case")
			}
			var in editInput
			if err := json.Unmarshal(c.Input, &in); err != nil {
				t.Fatal(err)
			}
			r := b.submit(in.step(b))
			if r.Status != check.status {
				t.Errorf("%v, want %v: %v %q", r.Status, check.status, r.Error, r.GetOutput().GetText())
			}
			for _, look := range check.looks {
				look(t, b, r)
			}
		})
	}
	if n != len(editChecks)+len(editStories) {
		t.Errorf("%d cases, %d checks", n, len(editChecks)+len(editStories))
	}
}
