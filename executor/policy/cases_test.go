package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

type commandCase struct {
	ID, Kind, Input, Why string
	Setup                struct {
		Files map[string]string
		Bash  string
	}
	Policy struct {
		Allow, Deny []string
		Default     string
		Writes      string
		Network     any // "deny", or the names of hosts
	}
	Expect struct {
		Verdict string
		AlsoOK  []string `json:"also_ok"`
	}
}

// verdicts that are as good as what a case expects: nothing got out.
func (c *commandCase) right(got string) bool {
	want := append([]string{c.Expect.Verdict}, c.Expect.AlsoOK...)
	if slices.Contains(want, "refuse") || slices.Contains(want, "contained") {
		want = append(want, "deny", "ask")
	}
	return slices.Contains(want, got)
}

func rules(words []string) []string {
	var list []string
	for _, w := range words {
		if w == "*" {
			list = append(list, "Bash(*)")
		} else {
			list = append(list, "Bash("+w+":*)")
		}
	}
	return list
}

func TestCommandCases(t *testing.T) {
	f, err := os.Open("testdata/commands.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c commandCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			got, d := judgeCase(t, &c)
			reason, known := knownWrong[c.ID]
			switch right := c.right(got); {
			case right && known:
				t.Errorf("%q is judged right now: take it off knownWrong", c.Input)
			case !right && !known:
				t.Errorf("[%s] %q: %s, want %s %v\n\t%s\n\t%s: %s, part %q", c.Kind, c.Input, got, c.Expect.Verdict, c.Expect.AlsoOK, c.Why, d.Rule, d.Reason, d.Part)
			case !right:
				t.Log(reason)
			}
		})
	}
	if err := sc.Err(); err != nil || n != 211 {
		t.Errorf("%d cases were read: %v", n, err)
	}
}

func judgeCase(t *testing.T, c *commandCase) (string, *v1.Decision) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	fill := strings.NewReplacer("${WS}", ws, "${HOME}", home, "${OUT}", t.TempDir())
	for name, text := range c.Setup.Files {
		p := filepath.Join(ws, fill.Replace(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(fill.Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if c.Setup.Bash != "" {
		cmd := exec.Command("bash", "-c", fill.Replace(c.Setup.Bash))
		cmd.Dir, cmd.Env = ws, append(os.Environ(), "HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("setup: %v: %s", err, out)
		}
	}
	allowed := rules(c.Policy.Allow)
	safety := &v1.Safety{Network: v1.Safety_deny}
	if hosts, ok := c.Policy.Network.([]any); ok {
		safety.Network = v1.Safety_network_unspecified
		for _, h := range hosts {
			allowed = append(allowed, "WebFetch(domain:"+h.(string)+")")
		}
	}
	p, err := Load(Options{Allow: allowed, Deny: rules(c.Policy.Deny), Workspace: ws, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	p.unsandboxed = true // the analysis alone is tested: the sandbox's own /tmp would allow more
	if c.Policy.Writes == "none" {
		safety.Writes = v1.Safety_none
	}
	d := p.Judge(Request{Action: contract.RunCommand, Cmd: fill.Replace(c.Input), Cwd: ws, Safety: safety}).Decision
	return d.Verdict.String(), d
}

// knownWrong are the cases that are judged wrong, and why.
var knownWrong = map[string]string{
	"S-cmd-131": "allowed by its rule; the proxy judges the host that is really asked for and refuses it (executor/sandbox, TestNetwork)",
	"S-cmd-130": "allowed by its rule; the sandbox has no network, so nothing gets out",
}
