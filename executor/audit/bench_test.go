package audit

import (
	"fmt"
	"os"
	"testing"
	"time"

	v1 "harness/contract/harness/v1"
)

// BenchmarkStep is what a step adds: its start, and its end with a head.
func BenchmarkStep(b *testing.B) {
	dir := b.TempDir()
	key, err := OpenKey(dir)
	if err != nil {
		b.Fatal(err)
	}
	l, err := Open(dir, "x1", key)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := step(l, "s1"); err != nil {
			b.Fatal(err)
		}
	}
}

func step(l *Log, id string) error {
	decision := &v1.Decision{Verdict: v1.Decision_allow, Rule: "Bash(true)", Source: "flag", Reason: "allowed"}
	if err := l.Add(Step(Started, &v1.Step{StepId: id, Action: "run_command"}, "sha256:2", decision)); err != nil {
		return err
	}
	_, err := l.Seal(Result(&v1.StepResult{StepId: id, Action: "run_command", Status: v1.Status_ok, Decision: decision,
		Execs: []*v1.Exec{{Program: "/bin/sh", Argv: []string{"sh", "-c", "true"}}}})...)
	return err
}

// BenchmarkVerifyMillion verifies a log of a million records; HARNESS_MILLION=1 runs it.
func BenchmarkVerifyMillion(b *testing.B) {
	if os.Getenv("HARNESS_MILLION") == "" {
		b.Skip("takes a minute: set HARNESS_MILLION=1")
	}
	dir := b.TempDir()
	key, err := OpenKey(dir)
	if err != nil {
		b.Fatal(err)
	}
	l, err := Open(dir, "x1", key)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1_000_000 / 3 {
		if err := step(l, fmt.Sprintf("s%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	l.Close()
	for b.Loop() {
		start := time.Now()
		r, err := Verify(dir, "x1", key.Public(), nil)
		if err != nil || len(r.Findings) > 0 {
			b.Fatal(r, err)
		}
		b.ReportMetric(float64(r.Lines), "lines")
		b.ReportMetric(time.Since(start).Seconds(), "s/verify")
	}
}
