package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImport(t *testing.T) {
	for _, name := range []string{"settings.json", "default.rules"} {
		data, err := os.ReadFile(filepath.Join("testdata/import", name))
		if err != nil {
			t.Fatal(err)
		}
		x, err := Import(name, data)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata/import", strings.TrimSuffix(name, filepath.Ext(name))+".want"))
		if err != nil {
			t.Fatal(err)
		}
		got := x.TOML() + strings.Join(x.Notes, "\n") + "\n"
		if got != string(want) {
			t.Errorf("%s: got\n%s", name, got)
		}
		file := filepath.Join(t.TempDir(), "p.toml")
		write(t, file, x.TOML())
		if _, err := Load(Options{PolicyFile: file, Workspace: "/w", Home: "/h"}); err != nil {
			t.Errorf("%s: what was imported does not load: %v", name, err)
		}
	}
}

func TestImportErrors(t *testing.T) {
	for text, says := range map[string]string{
		"prefix_rule(pattern = [])":                            "r.rules:1: prefix_rule needs pattern",
		"\n\nprefix_rule(pattern = [\"a\"":                     "r.rules:3: a , or ] was expected",
		"prefix_rule(pattern = [\"a\"], decision = \"maybe\")": "unknown decision \"maybe\"",
		"import x":             "r.rules:1: a ( was expected",
		"prefix_rule(\n\"a\")": "r.rules:2: key = value was expected",
	} {
		if _, err := Import("r.rules", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Import("s.json", []byte("{\n\"permissions\": {\n,}}")); err == nil || !strings.Contains(err.Error(), "s.json:3") {
		t.Errorf("%v", err)
	}
}

// Whatever a rule file says, it is read to its end or refused.
func FuzzImport(f *testing.F) {
	for _, s := range []string{"prefix_rule(pattern = ['a', ['b', \"c\"]], match = [['a']])\n# x\nf(x = 1)", "prefix_rule(pattern=[[[]]])", "a(b=\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if x, err := Import("r.rules", []byte(text)); err == nil {
			if _, err := parseFile("p.toml", []byte(x.TOML()), true); err != nil {
				t.Errorf("%q came to %q: %v", text, x.TOML(), err)
			}
		}
	})
}
