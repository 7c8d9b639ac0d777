package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var blanks = strings.NewReplacer("\t", "", "\r", "", " ", "")

var gitConfigs = []string{
	"[core]\n\tfsmonitor = ./x\n", "[core]fsmonitor=./x", "[CORE]\nFsMonitor\n", "[core \"A b\"]\nx=1\n[core.Sub]\ny=2\n",
	"[a]\nx = one \\\n two # no\ny = \"q # yes\" ; no\nz = a\\tb\\n\\\"\\\\\n", "# c\n; d\n[a] # e\n b = c\n", "\ufeff[a]\r\nb = c\r\nd\r\n",
	"[a \"x\\\"y\\\\z\"]\nb=\n[a]\nb = \" lead\" trail  \n", "[alias]\nst = !x\n[include]\npath=y", "[a]\nb = c\\\r\nd\n", "[a]\nb-c = d\n9x=1",
	"[a\n", "[a]\nb c\n", "[a] b = c [d] e = f\n", "[a]\nb = \"unclosed\nc = d\n", "x = 1\n", "[a]\nb = \\q\n", "[a.b \"c\"]\nd=e\n",
}

// What git reads out of a configuration, ParseGitConfig does too: a setting
// that it missed could be planted.
func FuzzParseGitConfig(f *testing.F) {
	for _, c := range gitConfigs {
		f.Add(c)
	}
	file := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			t.Skip("git ends a string there")
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "config", "--no-includes", "-z", "--list", "-f", file).Output()
		if err != nil {
			return // git refuses to work with it
		}
		got, whole := ParseGitConfig(text)
		if !whole {
			return // such a change does not land
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			key, value, has := strings.Cut(line, "\n")
			if !has {
				value = "true"
			}
			same := func(s Setting) bool { // which blanks of a value stay differs between versions of git
				return s.Key == key && (s.Value == value || blanks.Replace(s.Value) == blanks.Replace(value))
			}
			if line != "" && !slices.ContainsFunc(got, same) {
				t.Errorf("%q: git reads %q = %q, here %q", text, key, value, got)
			}
		}
	})
}

func TestSettingsThatStartPrograms(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{"user.name", "x", false}, {"core.fsmonitor", "true", false}, {"core.fsmonitor", "./x", true}, {"core.pager", "less", false},
		{"filter.lfs.clean", "git-lfs clean -- %f", false}, {"filter.x.clean", "git-lfs clean -- %f", true}, {"alias.st", "status -sb", false},
		{"alias.co", "checkout", false}, {"alias.x", "-c core.pager=x log", true}, {"alias.x", "rebase -x touch", true}, {"alias.g", "log --graph --oneline", false},
		{"remote.origin.url", "https://example.com/x.git", false}, {"remote.origin.url", "ext::sh -c x", true}, {"url.ext::x.insteadof", "https:", true},
		{"submodule.a.update", "rebase", false}, {"submodule.a.update", "!x", true}, {"protocol.ext.allow", "always", true}, {"gpg.ssh.defaultkeycommand", "x", true},
		{"difftool.a.b.cmd", "x", true}, {"credential.helper", "cache", false}, {"pager.log", "x", true}, {"branch.main.merge", "refs/heads/main", false},
	} {
		if got := (Setting{c.key, c.value}).StartsPrograms(); got != c.want {
			t.Errorf("%s = %s: %v", c.key, c.value, got)
		}
	}
}
