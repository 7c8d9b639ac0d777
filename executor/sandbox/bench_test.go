//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTrue compares /bin/true in the sandbox with a plain fork and exec
// of it, by turns, and reports the ratio.
func BenchmarkTrue(b *testing.B) {
	x := newBox(b)
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	upper, work := filepath.Join(x.base, "state", "u"), filepath.Join(x.base, "state", "k")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	c := Command{Argv: []string{"/bin/true"}, Dir: x.ws, Env: []string{"PATH=/bin"}, Upper: upper, Work: work, Limits: testLimits, Timeout: time.Minute, Output: null}
	var plain, boxed time.Duration
	for b.Loop() {
		begin := time.Now()
		pid, err := syscall.ForkExec("/bin/true", c.Argv, &syscall.ProcAttr{Env: c.Env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			b.Fatal(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if exit, err := x.Run(b.Context(), c); err != nil || exit.Code != 0 {
			b.Fatal(exit, err)
		}
		plain += middle.Sub(begin)
		boxed += time.Since(middle)
	}
	b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "plain-µs")
	b.ReportMetric(float64(boxed.Microseconds())/float64(b.N), "sandboxed-µs")
	b.ReportMetric(float64(boxed)/float64(plain), "ratio")
}
