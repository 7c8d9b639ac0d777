package e2e

import (
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// What a deny rule names does not run when another program starts it either,
// and the result says so.
func TestGate(t *testing.T) {
	b := newBed(t, policy.Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(seq:*)", "Bash(git push:*)", "Bash(sh:*)"}}, direct)
	b.write("Makefile", "all:\n\techo x > made\n\t@cp /usr/bin/seq q; ./q 9\ntry:\n\t-@cp /usr/bin/seq q; ./q 9; rm q\npush:\n\t@git --no-pager push\n")
	t.Run("it decides the step", func(t *testing.T) {
		r := b.want(b.sh("make SHELL=/bin/bash"), v1.Status_denied)
		if r.Decision.Rule != "Bash(seq:*)" || strings.Contains(r.Output.Text, "7\n") || r.Changes != nil {
			t.Errorf("%v", r)
		}
		contains(t, r.Error.Hint, "Bash(seq:*)")
		contains(t, strings.Join(r.Notes, "\n"), "/q was refused")
	})
	t.Run("it does not", func(t *testing.T) {
		r := b.want(b.sh("make try SHELL=/bin/bash"), v1.Status_ok)
		contains(t, strings.Join(r.Notes, "\n"), "/q was refused", "Bash(seq:*)")
		contains(t, r.Output.Text, "refused to run")
	})
	t.Run("by its words", func(t *testing.T) {
		if r := b.want(b.sh("make push SHELL=/bin/bash"), v1.Status_denied); r.Decision.Rule != "Bash(git push:*)" {
			t.Errorf("%v", r.Decision)
		}
	})
	t.Run("the record", func(t *testing.T) {
		r := b.want(b.sh("/usr/bin/env A=1 /bin/ls Makefile; (exit 3); cat nothing || true"), v1.Status_ok)
		var got []string
		for _, e := range r.Execs {
			if e.Refused != nil || e.Started == nil || e.Cwd != b.dir {
				t.Errorf("%v", e)
			}
			got = append(got, strings.Join(e.Argv, " "))
		}
		want := []string{"/usr/bin/env A=1 /bin/ls Makefile", "/bin/ls Makefile", "cat nothing"}
		if len(got) != 4 || strings.Join(got[1:], "|") != strings.Join(want, "|") || r.ExecsTotal != 4 {
			t.Fatalf("%q, %d", got, r.ExecsTotal)
		}
		if e := r.Execs[3]; e.ExitCode == nil || *e.ExitCode != 1 || e.WallMs <= 0 {
			t.Errorf("%v", e)
		}
		if e := r.Execs[1]; e.ExitCode != nil || e.WallMs <= 0 {
			t.Errorf("what became another program: %v", e)
		}
	})
	t.Run("many", func(t *testing.T) {
		r := b.want(b.sh("i=0; while [ $i -lt 230 ]; do i=$((i+1)); /bin/true; done; cat /usr/bin/seq > q; chmod +x q; ./q 9 || rm q"), v1.Status_ok)
		if n := len(r.Execs); r.ExecsTotal != 235 || n != 201 || r.Execs[n-1].Refused == nil {
			t.Errorf("%d of %d", n, r.ExecsTotal)
		}
	})
}
