package view

import (
	"fmt"
	"hash/maphash"
	"strings"

	"harness/contract"
	"harness/planner/model"
)

// read is a result that stands in the view.
type read struct {
	number int // of its message
	sum    uint64
}

var seed = maphash.MakeSeed()

const minRepeat = 400 // bytes of a result from which a note is shorter

// results is new results: a note for each that stands in the view already, and
// the head and tail of those that would fill it alone.
func (v *View) results(list []model.ToolResult) []model.ToolResult {
	out := make([]model.ToolResult, len(list))
	most := max(int(float64(v.tokens)*share*firstRatio)/3/len(list), 1000) // the same when the log is read again
	var calls []model.ToolCall
	if n := len(v.out); n > 0 {
		calls = v.out[n-1].Calls
	}
	shown := 0
	for i, r := range list {
		if contract.Reads(r.Name) && !r.IsError && (len(r.Text) >= minRepeat || len(r.Images) > 0) && i < len(calls) {
			key, sum := r.Name+string(calls[i].Args), sumOf(r)
			if before, ok := v.reads[key]; ok && before.sum == sum {
				r.Text, r.Images = "[unchanged: the same as the result of the same call above]", nil
			} else {
				v.reads[key] = read{v.number(len(v.out)), sum}
			}
		}
		r.Text = trimmed(r.Text, most)
		if shown += len(r.Images); shown > keepPictures {
			r = model.Message{Results: []model.ToolResult{r}}.Without("too many at once; read it again, alone").Results[0]
		}
		out[i] = r
	}
	return out
}

func sumOf(r model.ToolResult) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(r.Text)
	for _, i := range r.Images {
		h.Write(i.Data)
	}
	return h.Sum64()
}

// trimmed is head and tail of a text of more than n bytes.
func trimmed(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s\n[… %d bytes left out; read it in smaller parts …]\n%s", s[:n*2/3], len(s)-n, s[len(s)-n/3:]), "")
}
