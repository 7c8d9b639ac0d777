//go:build linux

package e2e

import (
	"context"
	"testing"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

func (b *bed) auto(cmd string, wait time.Duration) *v1.Step {
	step := b.step(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 30})
	step.Mode, step.WaitMs = v1.Step_auto, uint32(wait.Milliseconds())
	return step
}

// A command that waits for input says so with its prompt, whoever reads; what is written reaches it.
func TestNeedsInput(t *testing.T) {
	for name, c := range map[string]struct{ cmd, prompt string }{
		"a shell":      {`printf 'Your name? '; read n; echo "hello $n"`, "Your name? "},
		"a program":    {`echo 'Your name?'; n=$(head -n 1); echo "hello $n"`, "Your name?"},
		"deep below":   {`sh -c 'sh -c "printf \"Go on? [y/n] \"; read n; echo hello \$n"' | cat`, "Go on? [y/n] "},
		"with a child": {`sleep 20 & printf '> '; read n; echo "hello $n"`, "> "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, allowAll, direct)
			step := b.auto(c.cmd, 20*time.Second)
			r := b.want(b.submit(step), v1.Status_needs_input)
			if got := r.GetOutput().GetText(); got != c.prompt {
				t.Errorf("prompt %q", got)
			}
			b.want(b.submit(step), v1.Status_needs_input) // asked again, it still waits
			b.want(b.do(contract.WriteStdin, map[string]any{"target": step.StepId, "text": "ann\n"}), v1.Status_ok)
			contains(t, b.want(b.submit(step), v1.Status_ok).Output.Text, "hello ann")
			told := 0
			if err := b.x.Watch(context.Background(), &v1.WatchRequest{SessionId: b.id}, func(e *v1.Event) error {
				if n := e.GetNeedsInput(); n != nil && n.Prompt == c.prompt {
					told++
				}
				return nil
			}); err != nil || told != 1 {
				t.Errorf("told %d times, %v", told, err)
			}
		})
	}
}

// A command that only works is not taken for one that waits, and one that takes
// long is left to go on.
func TestAutoGoesOn(t *testing.T) {
	b := newBed(t, allowAll, direct)
	b.want(b.submit(b.auto("echo quick", 20*time.Second)), v1.Status_ok)
	step := b.auto("sleep 1.2; echo done > f; echo done", 300*time.Millisecond)
	b.want(b.submit(step), v1.Status_running)
	b.want(b.sh("echo meanwhile > g"), v1.Status_ok)
	for {
		r := b.submit(step)
		if r.Status == v1.Status_running {
			continue
		}
		contains(t, b.want(r, v1.Status_ok).Output.Text, "done")
		break
	}
	if b.read("f") != "done\n" || b.read("g") != "meanwhile\n" {
		t.Error("not both are there")
	}
	// The end of the input ends one that waits; a cancel too.
	eof := b.auto("cat; echo end", 20*time.Second)
	b.want(b.submit(eof), v1.Status_needs_input)
	b.want(b.do(contract.WriteStdin, map[string]any{"target": eof.StepId, "eof": true}), v1.Status_ok)
	contains(t, b.want(b.submit(eof), v1.Status_ok).Output.Text, "end")
	stop := b.auto("cat", 20*time.Second)
	b.want(b.submit(stop), v1.Status_needs_input)
	b.want(b.do(contract.CancelStep, map[string]any{"target": stop.StepId}), v1.Status_ok)
	for b.submit(stop).Status == v1.Status_needs_input {
		time.Sleep(10 * time.Millisecond)
	}
	b.want(b.submit(stop), v1.Status_cancelled)
}
