//go:build linux

package e2e

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// follow reads what a step prints from an offset to its end, by waiting for more.
func (b *bed) follow(target string, offset uint64) string {
	var text strings.Builder
	for {
		r := b.do(contract.ReadOutput, map[string]any{"target": target, "offset": offset, "limit": 100_000, "wait_ms": 2000})
		if r.Status != v1.Status_ok {
			b.t.Errorf("reading at %d: %v", offset, r)
			return text.String()
		}
		text.WriteString(r.Output.Text)
		offset = r.Output.Next
		if r.Target != v1.Status_running && offset == r.Output.TotalBytes {
			return text.String()
		}
	}
}

// What a command prints can be followed by several at once, far past what
// events carry, each from an offset of its own, while it runs and after.
func TestOutputFromAnyOffset(t *testing.T) {
	b := newBed(t, allowAll, direct)
	step := b.step(contract.RunCommand, map[string]any{"cmd": `i=0; while [ $i -lt 40 ]; do seq $((i*1000)) $((i*1000+999)); i=$((i+1)); test $i = 20 && sleep 1; done; :`})
	step.Mode = v1.Step_async
	b.want(b.submit(step), v1.Status_running)
	var want bytes.Buffer
	for i := range 40_000 {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	var got [3]string
	offsets := []uint64{0, 5, 150_000}
	var wg sync.WaitGroup
	for i, o := range offsets {
		wg.Go(func() { got[i] = b.follow(step.StepId, o) })
	}
	wg.Wait()
	again := b.follow(step.StepId, 150_000)
	for i, o := range offsets {
		if got[i] != want.String()[o:] {
			t.Errorf("from %d: %d bytes, wanted %d", o, len(got[i]), want.Len()-int(o))
		}
	}
	if again != got[2] {
		t.Error("after its end there is something else")
	}
	waiting := b.step(contract.RunCommand, map[string]any{"cmd": "printf 'a\\033[31mb\\303'; sleep 1; printf '\\244c\\n'; sleep 20"})
	waiting.Mode = v1.Step_async
	b.want(b.submit(waiting), v1.Status_running)
	// Half a character and a sequence that the text leaves out do not shift the offsets.
	text, next := "", uint64(0)
	for !strings.HasSuffix(text, "\n") {
		r := b.want(b.do(contract.ReadOutput, map[string]any{"target": waiting.StepId, "offset": next, "wait_ms": 500}), v1.Status_ok)
		if r.Target != v1.Status_running {
			t.Fatalf("%v before its end", r.Target)
		}
		text, next = text+r.Output.Text, r.Output.Next
	}
	if text != "abäc\n" {
		t.Errorf("%q", text)
	}
	b.want(b.do(contract.CancelStep, map[string]any{"target": waiting.StepId}), v1.Status_ok)
	if rest := b.follow(waiting.StepId, next); rest != "" {
		t.Errorf("after all was read: %q", rest)
	}
	if r := b.do(contract.ReadOutput, map[string]any{"target": "s_none"}); r.GetError().GetKind() != v1.Error_not_found {
		t.Errorf("of a step that is not known: %v", r)
	}
}
