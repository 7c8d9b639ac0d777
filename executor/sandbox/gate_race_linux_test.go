package sandbox

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var tries = flag.Int("gate.tries", 200, "how often the words of a program are changed while it starts")

// swap starts a program again and again while a second thread changes its words.
const swap = `#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char arg[] = "mad";
static void *flip(void *x) { for (;;) { *(volatile char *)arg = 'b'; *(volatile char *)arg = 'm'; } }
int main(int n, char **v) {
	pthread_t t;
	pthread_create(&t, 0, flip, 0);
	for (int i = atoi(v[1]); i > 0; i--) {
		char *words[] = {"touch", arg, 0};
		int pid = vfork(), s;
		if (pid == 0) { execv("/usr/bin/touch", words); _exit(1); }
		waitpid(pid, &s, 0);
	}
	return 0;
}
`

func TestGateRace(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	b := newBox(t)
	source := filepath.Join(b.base, "swap.c")
	if err := os.WriteFile(source, []byte(swap), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-O1", "-pthread", "-o", filepath.Join(b.ws, "swap"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	line := fmt.Sprintf("./swap %d; ls", *tries)
	long := func(c *Command) { c.Timeout, c.Limits.CPU = 10*time.Minute, 0 }
	if _, out := b.sh(t, t.Context(), line, long); out != "bad\nmad\nswap\n" {
		t.Fatalf("without the gate: %q", out)
	}
	exit, out := b.sh(t, t.Context(), line, func(c *Command) {
		long(c)
		c.Gate, c.Suspects = policyGate(t, b.ws, "Bash(touch bad:*)")
	})
	if !strings.HasSuffix(out, "\nmad\nswap\n") || strings.Contains(out, "bad\n") || !strings.Contains(out, "refused to run /usr/bin/touch\n") {
		t.Errorf("%+v %.300q", exit, out[max(0, len(out)-300):])
	}
	if exit.ExecsTotal < *tries {
		t.Errorf("only %d programs were seen", exit.ExecsTotal)
	}
}

// A stopped program stays stopped under the gate until it is continued, and
// signals come to it.
func TestGateSignals(t *testing.T) {
	b := newBox(t)
	exit, out := b.sh(t, t.Context(), `sh -c 'trap "echo usr; exit 4" USR1; while :; do sleep 0.02; done' & p=$!
sleep 0.2; kill -STOP $p; sleep 0.1; grep State /proc/$p/status | cut -c8; kill -USR1 $p; sleep 0.2; echo still; kill -CONT $p; wait $p; echo $?`,
		func(c *Command) { c.Gate, c.Suspects = policyGate(t, b.ws) })
	if out != "T\nstill\nusr\n4\n" && out != "t\nstill\nusr\n4\n" {
		t.Errorf("%+v %q", exit, out)
	}
}
