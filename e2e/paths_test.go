package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// pathCase is a line of testdata/paths.jsonl or testdata/sandbox_files.jsonl.
type pathCase struct {
	ID, Kind, Why string
	Setup         struct {
		Files map[string]string
		Bash  string
	}
	Policy struct {
		DenyRead  []string `json:"deny_read"`
		AllowRead []string `json:"allow_read"`
		Allow     []string
		Protected []string
	}
	Input struct {
		Tool, Path, Content, Command, Cwd, Action string
		Ops                                       []struct{ Op, Path, Content string }
		Steps                                     []string
		Repeat                                    int
		Call                                      struct{ Tool, Path string }
	}
	Expect struct {
		Verdict string
		AlsoOK  []string `json:"also_ok"`
		Fact    string
	}
}

// yard is where a case plays: a workspace, a home, and a folder beside them.
type yard struct {
	*bed
	home, out string
	fill      *strings.Replacer
}

func newYard(t *testing.T, c *pathCase) *yard {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{home: base + "/home", out: base + "/out"}
	ws := base + "/ws"
	for _, d := range []string{y.home, y.out, ws} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", y.home)
	t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
	y.fill = strings.NewReplacer("${WS}", ws, "${HOME}", y.home, "${OUT}", y.out, "$(basename ${WS})", "ws")
	if c.Setup.Bash != "" { // no pipes: some go on in the background
		cmd := exec.Command("bash", "-c", y.fill.Replace(c.Setup.Bash))
		cmd.Dir = ws
		if err := cmd.Run(); err != nil {
			t.Fatalf("setup: %v", err)
		}
	}
	o := policy.Options{}
	for _, d := range c.Policy.DenyRead {
		o.Deny = append(o.Deny, "Read("+d+")")
	}
	for _, p := range c.Policy.Protected {
		if !strings.Contains(p, " ") { // else what the product protects by itself
			o.Deny = append(o.Deny, "Edit("+p+")")
		}
	}
	for _, a := range append(c.Policy.Allow, c.Policy.AllowRead...) {
		o.Allow = append(o.Allow, "Bash("+a+":*)")
	}
	if strings.HasPrefix(c.ID, "S-sbx") {
		o = allowAll
	}
	if c.Input.Steps != nil {
		o.AskEdits = true
	}
	y.bed = newBedOn(t, ws, o, direct)
	for name, text := range c.Setup.Files {
		y.write(name, text)
	}
	return y
}

// try gives the case's input to the executor.
func (y *yard) try(c *pathCase) *v1.StepResult {
	in := c.Input
	switch path := y.fill.Replace(in.Path); in.Tool {
	case "read":
		return y.do(contract.ReadFile, map[string]any{"path": path})
	case "list":
		return y.do(contract.ListFiles, map[string]any{"path": path})
	case "write":
		return y.do(contract.WriteFile, map[string]any{"path": path, "content": in.Content})
	case "delete":
		return y.do(contract.ApplyPatch, map[string]any{"patch": "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch\n"})
	case "patch":
		return y.do(contract.ApplyPatch, map[string]any{"patch": "*** Begin Patch\n*** Add File: " + in.Ops[0].Path + "\n+" + in.Ops[0].Content + "*** End Patch\n"})
	}
	args := map[string]any{"cmd": y.fill.Replace(in.Command), "timeout_s": 20}
	if in.Cwd != "" {
		args["cwd"] = y.fill.Replace(in.Cwd)
	}
	return y.do(contract.RunCommand, args)
}

// came is what a result is in the words of the cases.
func came(r *v1.StepResult) []string {
	switch r.Status {
	case v1.Status_denied:
		if strings.Contains(r.GetError().GetMessage(), "outside the workspace") {
			return []string{"deny", "refuse", "contained", "error"} // an error that names the reason
		}
		return []string{"deny", "refuse", "contained"}
	case v1.Status_awaiting_approval:
		return []string{"ask", "contained"} // nothing has run
	case v1.Status_ok:
		return []string{"ok", "allow", "contained"}
	case v1.Status_error:
		switch r.GetError().GetKind() {
		case v1.Error_outside_workspace, v1.Error_denied:
			return []string{"deny", "refuse", "error"}
		}
		return []string{"error", "refuse"}
	}
	return []string{"contained", "error"}
}

func readCases(t *testing.T, file string, want int) (list []*pathCase) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c pathCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, &c)
	}
	if err := sc.Err(); err != nil || len(list) != want {
		t.Fatalf("%s: %d cases: %v", file, len(list), err)
	}
	return list
}

// Paths, by every name that they may be given, and the files that commands reach.
func TestPathCases(t *testing.T) {
	for _, c := range append(readCases(t, "testdata/paths.jsonl", 42), readCases(t, "testdata/sandbox_files.jsonl", 7)...) {
		t.Run(c.ID, func(t *testing.T) {
			y := newYard(t, c)
			play := y.try
			if special := specialCases[c.ID]; special != nil {
				play = func(*pathCase) *v1.StepResult { return special(y) }
			}
			r := play(c)
			got, want := came(r), append([]string{c.Expect.Verdict}, c.Expect.AlsoOK...)
			if !slices.ContainsFunc(got, func(g string) bool { return slices.Contains(want, g) }) {
				t.Errorf("[%s] %+v: %v, want %v: %v %q\n\t%s", c.Kind, c.Input, got, want, r.GetError(), r.GetOutput().GetText(), c.Why)
			}
			fact, checked := pathFacts[c.ID]
			if !checked {
				t.Fatalf("nothing checks that %s", c.Expect.Fact)
			}
			if wrong := fact(y, r); wrong != "" {
				t.Errorf("[%s] %s, but %s", c.Kind, c.Expect.Fact, wrong)
			}
		})
	}
}

// fact says what is wrong, "" if all is as the case says.
type fact func(*yard, *v1.StepResult) string

func unsaid(text string) fact {
	return func(_ *yard, r *v1.StepResult) string {
		if strings.Contains(r.GetOutput().GetText(), text) {
			return fmt.Sprintf("it says %q", r.GetOutput().GetText())
		}
		return ""
	}
}

func shows(text string) fact {
	return func(_ *yard, r *v1.StepResult) string {
		if !strings.Contains(r.GetOutput().GetText(), text) {
			return fmt.Sprintf("it says %q", r.GetOutput().GetText())
		}
		return ""
	}
}

func absent(path string) fact {
	return func(y *yard, _ *v1.StepResult) string {
		path := y.at(path)
		if _, err := os.Lstat(path); err == nil {
			return path + " is there"
		}
		return ""
	}
}

func there(path, text string) fact {
	return func(y *yard, _ *v1.StepResult) string {
		if got, err := os.ReadFile(y.at(path)); err != nil || text != "" && string(got) != text {
			return fmt.Sprintf("%s is %q: %v", path, got, err)
		}
		return ""
	}
}

func errorSays(text string) fact {
	return func(_ *yard, r *v1.StepResult) string {
		if !strings.Contains(r.GetError().GetMessage(), text) {
			return fmt.Sprintf("the error is %q", r.GetError().GetMessage())
		}
		return ""
	}
}

func all(facts ...fact) fact {
	return func(y *yard, r *v1.StepResult) string {
		for _, f := range facts {
			if wrong := f(y, r); wrong != "" {
				return wrong
			}
		}
		return ""
	}
}

func (y *yard) at(path string) string {
	if path = y.fill.Replace(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(y.dir, path)
}
