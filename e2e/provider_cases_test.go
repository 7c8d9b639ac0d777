package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"harness/planner/model/recorded"
)

// toolServers: none is started yet, so nothing of the project's is, and a call
// of its tools is told to be of none.
func toolServers(t *testing.T, b *bed) {
	b.write(".mcp.json", `{"mcpServers":{"x":{"command":"touch","args":["`+b.dir+`/PWNED"]}}}`)
	r := b.task(calls("mcp__x__y", map[string]any{"a": 1}), ends)
	if r.StopReason != "done" || !r.results[0].IsError || !strings.Contains(r.results[0].Text, "there is no tool") {
		t.Errorf("%+v", r)
	}
	b.absent("PWNED")
}

// noise is an image of about 30 MB.
func noise(t *testing.T) string {
	img := image.NewNRGBA(image.Rect(0, 0, 2800, 2700))
	r := rand.New(rand.NewSource(1))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Intn(256))
	}
	img.Set(0, 0, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func small(t *testing.T) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What the loop decides of the provider cases; the wires' own stand beside the wires.
var loopCases = map[string]func(*testing.T, *bed){
	"S-prv-014": func(t *testing.T, b *bed) {
		r := b.task(slices.Repeat([]recorded.Reply{{Text: "  \n"}}, 20)...)
		if r.StopReason != "empty_reply" || r.ExitCode != 1 || len(r.requests) != 4 {
			t.Errorf("%d requests, %+v", len(r.requests), r.Report)
		}
	},
	"S-prv-017": func(t *testing.T, b *bed) {
		b.write("f", "one\ntwo\nthree\n")
		edit := func(from, to string) recorded.Call {
			args, _ := json.Marshal(map[string]string{"path": "f", "old_string": from, "new_string": to})
			return recorded.Call{Name: "edit_file", Args: args}
		}
		r := b.task(looks("f"), recorded.Reply{Calls: []recorded.Call{edit("one", "1"), edit("three", "3")}}, ends)
		if got := b.read("f"); got != "1\ntwo\n3\n" {
			t.Errorf("%q, %+v", got, r.results)
		}
	},
	"S-prv-019": func(t *testing.T, b *bed) {
		b.write("big.png", noise(t))
		r := b.task(looks("big.png"), ends)
		last := r.requests[len(r.requests)-1]
		if r.StopReason != "done" || len(last) > 1<<20 || len(last) < 64<<10 || !strings.Contains(r.results[0].Text, "shown at") {
			t.Errorf("a request of %d bytes, %+v, %+v", len(last), r.Report, r.results)
		}
	},
	// An image that is refused is a note from then on; a damaged one is never sent.
	"S-prv-020": func(t *testing.T, b *bed) {
		b.write("a.png", small(t))
		b.write("cut.png", noise(t)[:5000])
		r := b.task(looks("a.png"), looks("cut.png"), recorded.Reply{Fault: "image"}, ends)
		with := func(i int) bool { return bytes.Contains(r.requests[i], []byte(`"type":"image"`)) }
		if r.StopReason != "done" || len(r.requests) != 4 || !with(1) || !with(2) || with(3) || !bytes.Contains(r.requests[3], []byte("a.png is not shown")) {
			t.Errorf("%+v, %d requests, the last: %.3000s", r.Report, len(r.requests), r.requests[len(r.requests)-1])
		}
		if text := r.results[1].Text; !strings.Contains(text, "damaged") {
			t.Errorf("%q", text)
		}
	},
	"S-prv-021": toolServers, "S-prv-022": toolServers, "S-prv-023": toolServers, "S-prv-024": toolServers,
}

func TestProviderCasesOfTheLoop(t *testing.T) {
	n := 0
	for _, c := range caseLines(t, "../planner/model/providers/testdata/provider.jsonl") {
		if test := loopCases[c.ID]; test != nil {
			n++
			t.Run(c.ID, func(t *testing.T) { test(t, newBed(t, injectionRules, direct)) })
		}
	}
	if n != len(loopCases) {
		t.Errorf("%d of %d cases are in the file", n, len(loopCases))
	}
}
