package policy

import "testing"

func TestExec(t *testing.T) {
	p, err := Load(Options{Workspace: t.TempDir(), Deny: []string{"Bash(rm -rf:*)", "Bash(git push:*)", "Bash(npm:*)", "Bash(sha1sum:*)"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, called string
		argv         []string
		rule         string
	}{
		{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-r", "-f", "x"}, "Bash(rm -rf:*)"},
		{"/usr/bin/rm", "/usr/bin/rm", []string{"x", "-fr", "x"}, "Bash(rm -rf:*)"},
		{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-r", "x"}, ""},
		{"/usr/bin/git", "/usr/bin/git", []string{"git", "-C", "d", "push", "-q"}, "Bash(git push:*)"},
		{"/usr/bin/git", "/usr/lib/git-core/git-push", []string{"git-push"}, "Bash(git push:*)"},
		{"/usr/bin/git", "/usr/bin/git", []string{"git", "send-pack", "x"}, "Bash(git push:*)"},
		{"/usr/bin/git", "/usr/bin/git", []string{"git", "gc", "--auto"}, ""},
		{"/usr/bin/node", "/usr/bin/npm", []string{"node", "/usr/bin/npm", "ci"}, "Bash(npm:*)"},
		{"/usr/bin/cat", "/usr/bin/cat", []string{"cat", "/usr/bin/npm"}, ""},
		{"/opt/busybox", "x", []string{"x", "rm", "-rf", "y"}, "Bash(rm -rf:*)"},
		{"/opt/busybox", "x", []string{"x", "ls", "rm", "-rf"}, ""},
		{"/sbin/mkfs.ext4", "/sbin/mkfs.ext4", []string{"mkfs.ext4", "/dev/sda"}, "Bash(mkfs.ext4:*)"},
		{"/usr/bin/systemctl", "/usr/bin/systemctl", []string{"systemctl", "status"}, ""},
		{"/tmp/x", "/tmp/x", nil, ""},
	} {
		d, more := p.Exec(Program{Path: c.path, Called: c.called, Argv: c.argv})
		if d.GetRule() != c.rule || more {
			t.Errorf("%s %q: %q, %v, want %q", c.path, c.argv, d.GetRule(), more, c.rule)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	p, err := Load(Options{Workspace: b.TempDir(), Deny: []string{"Bash(git push:*)"}})
	if err != nil {
		b.Fatal(err)
	}
	x := Program{Path: "/usr/bin/git", Called: "/usr/bin/git", Argv: []string{"git", "commit", "-q", "-m", "text"}, Size: 1}
	for b.Loop() {
		if d, more := p.Exec(x); d != nil || more {
			b.Fatal(d, more)
		}
	}
}

// What the first command of a policy pays.
func BenchmarkExecFirst(b *testing.B) {
	p, err := Load(Options{Workspace: b.TempDir(), Deny: []string{"Bash(git push:*)"}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.denied = new(denials)
		p.Suspects()
	}
}
