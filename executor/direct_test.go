package executor

import (
	"os/exec"
	"slices"
	"testing"
)

func TestArgv(t *testing.T) {
	env := []string{"PATH=/usr/bin:/bin"}
	for _, c := range []struct {
		cmd  string
		want []string // nil: by the shell
	}{
		{"ls -la", []string{"ls", "-la"}},
		{"/bin/ls 'a b' \"c d\"", []string{"/bin/ls", "a b", "c d"}},
		{"  ls\n", []string{"ls"}},
		{"ls # all", []string{"ls"}},
		{"true", nil}, {"echo hi", nil}, {"time ls", nil}, {"[ -f x ]", nil}, {"! ls", nil},
		{"ls *", nil}, {"ls ~", nil}, {"ls ~/x", nil}, {"ls $HOME", nil}, {"ls \"$HOME\"", nil}, {"ls {a,b}", nil}, {"ls [a]", nil}, {`ls a\ b`, nil},
		{"ls $'a'", nil}, {`ls "a\$b"`, nil}, {"ls `pwd`", nil}, {"ls a=~", nil},
		{"A=b ls", nil}, {"A=b", nil}, {"ls > f", nil}, {"ls 2>&1", nil}, {"ls; ls", nil}, {"ls\nls", nil}, {"ls &", nil}, {"ls | cat", nil}, {"(ls)", nil}, {"{ ls; }", nil},
		{"nowhere-to-be-found", nil}, {"./ls", nil}, {"../bin/ls", nil}, {"/usr/bin/../bin/ls", nil}, {"/etc/passwd", nil}, {"", nil}, {"ls 'open", nil},
	} {
		got := argv(c.cmd, env)
		want := c.want
		if want == nil {
			want = []string{shellProgram(), "-c", c.cmd}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", c.cmd, got, want)
		}
	}
	for _, env := range [][]string{{"PATH=.:/usr/bin"}, {"PATH=/home/x/bin:/usr/bin"}, {"PATH=:/usr/bin"}, nil, {"PATH=/usr/bin", "BASH_FUNC_ls%%=() { :; }"}} {
		if got := argv("ls -la", env); len(got) != 3 || got[1] != "-c" {
			t.Errorf("with %q: %q", env, got)
		}
	}
}

// What runs without a shell gets the very words that the shell would give.
func TestArgvAsShell(t *testing.T) {
	env := []string{"PATH=/usr/bin:/bin"}
	for _, cmd := range []string{`printenv 'a b' "c  d" e''f "" x"y"'z'`, `/usr/bin/printf '%s|' "it's" 'a"b' a,b @x -- +%d a:b c=d %`, `/usr/bin/printf %s 'a
b'`, `/usr/bin/printf '%s|' a#b`} {
		words := argv(cmd, env)
		direct := exec.Command(words[0], words[1:]...)
		direct.Env = env
		shell := exec.Command(shellProgram(), "-c", cmd)
		shell.Env = env
		got, _ := direct.CombinedOutput()
		want, _ := shell.CombinedOutput()
		if string(got) != string(want) {
			t.Errorf("%s: %q, the shell gives %q", cmd, got, want)
		}
	}
}
