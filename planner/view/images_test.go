package view

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"harness/planner/model"
)

func seenAt(n int) []model.Message {
	m := turn(n, 10)
	m[1].Results[0].Images = []model.Image{{Name: fmt.Sprintf("i%d.png", n), MediaType: "image/png", Width: 1500, Height: 1000, Data: []byte{1, byte(n)}}}
	return m
}

func total(v *View) (n int) {
	for _, m := range v.Messages() {
		n += m.Pictures()
	}
	return n
}

// Images count in tokens, no request has more than every provider takes, and
// the task's stay until one is refused. A run that goes on sees the same.
func TestImagesFold(t *testing.T) {
	v, folds := New(200_000, 0), 0
	first := user(task)
	first.Images = []model.Image{{Name: "task.png", Width: 100, Height: 100, Data: []byte{0}}}
	log := []entry{{m: &first}}
	v.Add(first)
	was := v.Tokens()
	for n := range 100 {
		for _, m := range seenAt(n) {
			log = append(log, entry{m: &m})
			v.Add(m)
		}
		if n == 0 && v.Tokens() < was+2000 {
			t.Errorf("an image counts %d tokens", v.Tokens()-was)
		}
		if v.Over() {
			f, ok := v.Plan()
			if !ok {
				t.Fatal("nothing to fold")
			}
			folds++
			log = append(log, entry{fold: &f})
			v.Apply(f)
		}
		if got := total(v); got > maxPictures || got != v.pictures || v.Messages()[0].Images == nil {
			t.Fatalf("%d images, counted %d", got, v.pictures)
		}
	}
	if folds < 5 || folds > 12 {
		t.Errorf("%d foldings", folds)
	}
	if text := v.Messages()[2].Results[0].Text; !strings.Contains(text, "i0.png is not shown") {
		t.Errorf("%q", text)
	}
	f, ok := v.Unseen()
	log = append(log, entry{fold: &f})
	v.Apply(f)
	if _, again := v.Unseen(); !ok || again || total(v) != 0 || !strings.HasPrefix(v.Messages()[0].Text, task) {
		t.Errorf("%v, %d images are left", ok, total(v))
	}
	again := New(200_000, 0)
	for _, e := range log {
		b, _ := json.Marshal(e.fold)
		if e.fold != nil {
			e.fold = new(Fold)
			if err := json.Unmarshal(b, e.fold); err != nil {
				t.Fatal(err)
			}
		}
		again.enter(e)
	}
	if !reflect.DeepEqual(again.Messages(), v.Messages()) || again.size != v.size {
		t.Error("the log gives another view")
	}
}

// The same image of the same read stands once; too many of one reply are notes.
func TestImagesOfOneReply(t *testing.T) {
	v := New(200_000, 0)
	v.Add(user(task))
	for range 2 {
		for _, m := range seenAt(1) {
			v.Add(m)
		}
	}
	if total(v) != 1 || !strings.HasPrefix(v.Messages()[4].Results[0].Text, "[unchanged") {
		t.Errorf("%d images, %+v", total(v), v.Messages()[4].Results)
	}
	many := []model.Message{{Role: model.Assistant}, {Role: model.ToolRole}}
	for n := range 30 {
		m := seenAt(n + 10)
		many[0].Calls, many[1].Results = append(many[0].Calls, m[0].Calls...), append(many[1].Results, m[1].Results...)
	}
	v.Add(many[0])
	v.Add(many[1])
	if total(v) != 1+keepPictures || !strings.Contains(v.Messages()[6].Results[29].Text, "too many at once") {
		t.Errorf("%d images", total(v))
	}
}
