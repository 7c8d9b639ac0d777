package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// policyGate judges by the deny rules of a real policy.
func policyGate(t testing.TB, ws string, deny ...string) (Gate, *Suspects) {
	t.Helper()
	p, err := policy.Load(policy.Options{Workspace: ws, Deny: deny})
	if err != nil {
		t.Fatal(err)
	}
	suspects := Suspects(p.Suspects())
	return func(x Program) (*v1.Decision, bool) { return p.Exec(policy.Program(x)) }, &suspects
}

func TestGate(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		if !b.has("exec_gate") {
			t.Fatalf("no gate: %v", b.Capabilities())
		}
		const setup = "exec 2>/dev/null; "
		link := filepath.Join(b.ws, "hard")
		if err := os.Link("/usr/bin/seq", link); err != nil { // another file system: the same by what it holds
			body, err := os.ReadFile("/usr/bin/seq")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(link, body, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		py := func(code string) string { return "python3 -c '" + code + "'" }
		for _, c := range []struct{ name, needs, line string }{
			{"itself", "", "seq 9"},
			{"by path", "", "/usr/bin/seq 9"},
			{"copy", "", "cp /usr/bin/seq /tmp/x; /tmp/x 9"},
			{"copy in the workspace", "", "cp /usr/bin/seq x; ./x 9"},
			{"hard link", "", "./hard 9; ln hard h2; ./h2 9"},
			{"symlink", "", "ln -s /usr/bin/seq /tmp/l; /tmp/l 9"},
			{"interpreter of a script", "", `printf '#!/usr/bin/seq\n' > 9; chmod +x 9; PATH=; 9`},
			{"script", "", `printf '#!/bin/sh\nseq 9\n' > s; chmod +x s; ./s`},
			{"a script of that name", "", `mkdir d; printf '#!/bin/sh\necho 7\n' > d/seq; chmod +x d/seq; d/seq 9`},
			{"make", "make", `printf 'all:\n\t@seq 9\n' > Makefile; make`},
			{"git hook", "git", `git init -q r && cd r && printf '#!/bin/sh\nseq 9 > seen\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cat seen`},
			{"npm script", "npm", `echo '{"scripts":{"x":"seq 9"}}' > package.json; npm run --silent x`},
			{"execv", "python3", py(`import os;os.execv("/usr/bin/seq",["echo","9"])`)},
			{"posix_spawn", "python3", py(`import os;os.waitpid(os.posix_spawn("/usr/bin/seq",["seq","9"],{}),0)`)},
			{"fexecve", "python3", py(`import os;os.execve(os.open("/usr/bin/seq",os.O_RDONLY),["x","9"],{})`)},
			{"memfd", "python3", py(`import os;f=os.memfd_create("x");os.write(f,open("/usr/bin/seq","rb").read());os.execve(f,["x","9"],{})`)},
			{"/proc/self/fd", "python3", py(`import os;f=os.open("/usr/bin/seq",os.O_RDONLY);os.execv("/proc/self/fd/%d"%f,["x","9"])`)},
			{"thread", "python3", py(`import os,threading;threading.Thread(target=lambda:os.execv("/usr/bin/seq",["x","9"])).start();import time;time.sleep(2)`)},
			{"untraced child", "python3", py(`import ctypes,os;l=ctypes.CDLL(None);p=l.syscall(56,0x800011,0,0,0,0);p==0 and os.execv("/usr/bin/seq",["x","9"]);p>0 and os.waitpid(p,0)`)},
			{"own tracer", "python3", py(`import ctypes,os;ctypes.CDLL(None).ptrace(0,0,0,0);os.execv("/usr/bin/seq",["x","9"])`)},
			{"loader", "", "$(ls /lib64/ld-linux*.so* /lib/ld-linux*.so* | head -1) /usr/bin/seq 9"},
			{"loader and a copy", "", "cp /usr/bin/seq /tmp/y; $(ls /lib64/ld-linux*.so* /lib/ld-linux*.so* | head -1) --argv0 echo /tmp/y 9"},
			{"copy of the loader", "", "cp $(ls /lib64/ld-linux*.so* /lib/ld-linux*.so* | head -1) /tmp/z; cp /usr/bin/seq /tmp/y; /tmp/z /tmp/y 9"},
			{"busybox", "busybox", "busybox seq 9"},
			{"renamed busybox", "busybox", "cp $(which busybox) /tmp/b; /tmp/b seq 9; ln -s /tmp/b /tmp/seq; /tmp/seq 9"},
			{"env", "", "env -i seq 9"},
			{"xargs", "", "echo 9 | xargs seq"},
			{"find", "", "find . -maxdepth 0 -exec seq 9 ';'"},
			{"not readable", "", "cp /usr/bin/seq /tmp/n; chmod 111 /tmp/n; /tmp/n 9"},
			{"daemon", "", "setsid sh -c 'seq 9'"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if _, err := exec.LookPath(c.needs); err != nil && c.needs != "" {
					t.Skip("no " + c.needs)
				}
				line := setup + c.line
				plain, out := b.sh(t, t.Context(), line, nil)
				if !strings.Contains(out, "7\n") && c.name != "own tracer" && c.name != "untraced child" {
					t.Fatalf("without the gate it does not run: %+v %q", plain, out)
				}
				exit, out := b.sh(t, t.Context(), line, func(x *Command) { x.Gate, x.Suspects = policyGate(t, b.ws, "Bash(seq:*)") })
				refused := 0
				for _, e := range exit.Execs {
					if e.Refused != nil {
						refused++
					}
				}
				if strings.Contains(out, "7\n") || refused == 0 && c.name != "untraced child" {
					t.Errorf("%q, %d refused: %v", out, refused, exit.Execs)
				}
			})
		}
	})
}
