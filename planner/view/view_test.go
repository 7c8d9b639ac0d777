package view

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"harness/planner/model"
)

const task = "Mend the parser.\n\tRules: never touch the folder vendor; keep \u00e9 as it is.  "

func user(text string) model.Message { return model.Message{Role: model.User, Text: text} }

// turn is the nth call and its result.
func turn(n, size int) []model.Message {
	id := fmt.Sprintf("c%d", n)
	return []model.Message{
		{Role: model.Assistant, Text: fmt.Sprintf("I look at part %d.", n), Calls: []model.ToolCall{{ID: id, Name: "read_file", Args: json.RawMessage(fmt.Sprintf(`{"path":"f%d.go"}`, n))}}},
		{Role: model.ToolRole, Results: []model.ToolResult{{CallID: id, Name: "read_file", Text: fmt.Sprintf("%d\t%s", n, strings.Repeat("x", size))}}},
	}
}

// entry is one line of the log that a view is made of.
type entry struct {
	m    *model.Message
	fold *Fold
}

func (v *View) enter(e entry) {
	if e.m != nil {
		v.Add(*e.m)
	} else {
		v.Apply(*e.fold)
	}
}

// whole says what is wrong with the form of a conversation.
func whole(messages []model.Message) error {
	for i, m := range messages {
		if n := len(m.Calls); n > 0 && i+1 < len(messages) && len(messages[i+1].Results) != n {
			return fmt.Errorf("message %d has %d calls, the next one %d results", i, n, len(messages[i+1].Results))
		}
		if len(m.Results) > 0 && (i == 0 || len(messages[i-1].Calls) != len(m.Results) || messages[i-1].Calls[0].ID != m.Results[0].CallID) {
			return fmt.Errorf("the results of message %d have no calls", i)
		}
	}
	return nil
}

// A session of 3,000 steps in a small context.
func TestThreeThousandSteps(t *testing.T) {
	v, folds := New(32_000, 6000), 0
	var log []entry
	add := func(m model.Message) {
		log = append(log, entry{m: &m})
		v.Add(m)
	}
	add(user(task))
	most := 0
	for n := range 3000 {
		if n == 700 {
			add(user("And never use reflection."))
		}
		for _, m := range turn(n, 300+n*7919%9000) {
			add(m)
		}
		if v.Over() {
			f, ok := v.Plan()
			if !ok {
				t.Fatalf("step %d: over, and nothing to fold", n)
			}
			f.State = fmt.Sprintf("Files changed so far: %d", n)
			folds++
			v.Apply(f)
			log = append(log, entry{fold: &f})
			if err := whole(v.Messages()); err != nil {
				t.Fatalf("step %d: %v", n, err)
			}
		}
		got := v.Messages()
		if got[0].Text != task {
			t.Fatalf("step %d: the task is %q", n, got[0].Text)
		}
		if v.dropped > 0 && n > 700 && v.number(v.place(0)) > 1400 && !strings.Contains(got[1].Text, "never use reflection") {
			t.Fatalf("step %d: what the user said is lost", n)
		}
		size := 0
		for _, m := range got {
			size += sizeOf(m)
		}
		if size != v.size {
			t.Fatalf("step %d: the size is %d, counted %d", n, size, v.size)
		}
		most = max(most, v.Tokens())
	}
	if folds < 50 || most > 32_000 {
		t.Errorf("%d foldings, at most %d tokens", folds, most)
	}
	if text := v.Messages()[1].Text; !strings.Contains(text, "Files changed so far: 29") || !strings.Contains(text, "never use reflection") {
		t.Errorf("the note: %s", text)
	}
	again := New(32_000, 9000) // with another system prompt
	for _, e := range log {
		again.enter(e)
	}
	if !reflect.DeepEqual(again.Messages(), v.Messages()) {
		t.Error("the same log gives another view")
	}
}

// Between two foldings what was sent stays as it was, so that a cache holds.
func TestPrefixIsStable(t *testing.T) {
	v := New(16_000, 0)
	v.Add(user(task))
	var before []model.Message
	for n := range 400 {
		for _, m := range turn(n, 2000) {
			v.Add(m)
		}
		if v.Over() {
			f, _ := v.Plan()
			v.Apply(f)
		} else if len(before) > 0 && !reflect.DeepEqual(before, v.Messages()[:len(before)]) {
			t.Fatalf("step %d: the beginning has changed", n)
		}
		before = append([]model.Message{}, v.Messages()...)
	}
}

func TestRepeatedReads(t *testing.T) {
	v := New(0, 0)
	v.Add(user(task))
	read := func(text string) string {
		m := turn(1, 0)
		m[1].Results[0].Text = text
		v.Add(m[0])
		v.Add(m[1])
		return v.Messages()[len(v.Messages())-1].Results[0].Text
	}
	first, other := strings.Repeat("a", 5000), strings.Repeat("b", 5000)
	for i, c := range []struct{ text, want string }{{first, first}, {first, "[unchanged"}, {other, other}, {first, first}, {first, "[unchanged"}} {
		if got := read(c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("read %d: %.30q, want %.30q", i, got, c.want)
		}
	}
	v.Apply(Fold{Tokens: 128_000, Results: v.number(len(v.Messages()))}) // all fold: the next one must come whole
	if got := read(first); got != first {
		t.Errorf("after a folding: %.50q", got)
	}
}

// One result that is as large as the context does not fill it.
func TestLargeResult(t *testing.T) {
	v := New(8000, 0)
	v.Add(user(task))
	for _, m := range turn(1, 1<<20) {
		v.Add(m)
	}
	if text := v.Messages()[2].Results[0].Text; v.Over() || !strings.Contains(text, "left out") {
		t.Errorf("%d bytes", len(text))
	}
}

// Whatever the conversation, a folding parts no call from its result, keeps the
// task, and Shrink comes to an end.
func TestFoldings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := New(rapid.IntRange(0, 60_000).Draw(t, "tokens"), rapid.IntRange(0, 20_000).Draw(t, "overhead"))
		v.Add(user(task))
		for n := range rapid.IntRange(0, 60).Draw(t, "turns") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				v.Add(user(strings.Repeat("w", rapid.IntRange(0, 20_000).Draw(t, "words"))))
			case 1:
				v.Add(model.Message{Role: model.Assistant, Text: "done"})
			default:
				for _, m := range turn(n, rapid.IntRange(0, 50_000).Draw(t, "size")) {
					v.Add(m)
				}
			}
			if v.Over() {
				if f, ok := v.Plan(); ok {
					v.Apply(f)
				}
			}
			if err := whole(v.Messages()); err != nil || v.Messages()[0].Text != task {
				t.Fatalf("turn %d: %v", n, err)
			}
		}
		for range 40 {
			f, ok := v.Shrink()
			if !ok {
				return
			}
			v.Apply(f)
			if err := whole(v.Messages()); err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal("it shrinks for ever")
	})
}

// The view of a turn costs the same at every step: read ns/op of the two by turns.
func BenchmarkView(b *testing.B) {
	for _, steps := range []int{20, 2000} {
		b.Run(fmt.Sprint("step ", steps), func(b *testing.B) {
			v := New(200_000, 6000)
			v.Add(user(task))
			for n := range steps {
				for _, m := range turn(n, 1500) {
					v.Add(m)
				}
				if v.Over() {
					f, _ := v.Plan()
					v.Apply(f)
				}
			}
			v.out = slices.Grow(v.out, 2) // as it mostly is
			next := turn(steps, 1500)
			b.ReportAllocs()
			for b.Loop() {
				x := *v
				x.Add(next[0])
				x.Add(next[1])
				if x.Over() {
					x.Plan()
				}
				x.Messages()
			}
		})
	}
}
