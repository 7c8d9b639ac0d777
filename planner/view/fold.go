package view

import (
	"fmt"
	"strings"

	"harness/contract/picture"
	"harness/planner/model"
)

// Fold is one folding, as the log keeps it.
type Fold struct {
	Tokens  int    `json:"tokens"`            // of the context that it was made for
	Results int    `json:"results"`           // results of the messages before this number are folded
	Dropped int    `json:"dropped"`           // messages after the task that are left out
	Images  int    `json:"images,omitempty"`  // images of the messages before this number are notes; the task's are not
	Blind   bool   `json:"blind,omitempty"`   // of all messages so far, the task too: an image was refused
	State   string `json:"state,omitempty"`   // what must not be lost with them
	Summary string `json:"summary,omitempty"` // of them, by a model
}

// How many messages at the end are left as they are: fewer where that is not enough.
var keeps = []int{8, 4, 2, 1}

// maxSaid is how many bytes of a person's own words are kept of the turns that are left out.
const maxSaid = 8 << 10

// How many images a request may have, and how many of the newest a folding leaves.
const (
	maxPictures  = picture.MaxCount
	keepPictures = 8
)

// Over says that the view is to be folded before the next request.
func (v *View) Over() bool { return v.size > v.budget() || v.pictures > maxPictures }

// Unseen plans a folding without any image: one of them was refused. False: there is none.
func (v *View) Unseen() (Fold, bool) {
	return Fold{Tokens: v.tokens, Results: v.folded, Dropped: v.dropped, Blind: true}, v.pictures > 0
}

// oldPictures is the number of the message from which on images are left.
func (v *View) oldPictures() int {
	seen, at := 0, len(v.out)
	for ; at > v.head; at-- {
		if seen += v.out[at-1].Pictures(); seen > keepPictures && at < len(v.out) {
			break
		}
	}
	return v.number(at)
}

// Shrink plans a folding for half of the context: the provider says that the
// conversation is too long. False: there is nothing left to fold.
func (v *View) Shrink() (Fold, bool) {
	was := v.tokens
	v.tokens /= 2
	f, ok := v.Plan()
	v.tokens = was
	return f, ok && was > 4000
}

// Plan is the next folding: old results first, then old turns. False: there is
// nothing left to fold.
func (v *View) Plan() (Fold, bool) {
	f := Fold{Tokens: v.tokens, Results: v.folded, Dropped: v.dropped}
	if v.pictures > maxPictures {
		f.Images = v.oldPictures()
	}
	if v.size <= v.budget() && f.Images > 0 {
		return f, true
	}
	size, target := v.size, int(float64(v.budget())*after)
	for _, keep := range keeps {
		last := len(v.out) - keep
		for at := v.place(f.Results); at < last && size > target; at++ {
			f.Results = v.number(at) + 1
			if at >= v.head {
				size -= sizeOf(v.out[at]) - sizeOf(folded(v.out[at]))
			}
		}
		for at := v.place(f.Dropped + 1); at < last && size > target; {
			n := v.turn(at)
			if at+n > last {
				break
			}
			for _, m := range v.out[at : at+n] {
				if v.number(at) < f.Results {
					m = folded(m)
				}
				size -= sizeOf(m)
			}
			at += n
			f.Dropped += n
		}
		if size <= target {
			break
		}
	}
	f.Results = max(f.Results, f.Dropped+1)
	return f, f.Dropped > v.dropped || f.Results > v.folded && size < v.size
}

// turn is how many messages at a place belong together: a reply and its results.
func (v *View) turn(at int) int {
	if len(v.out[at].Calls) > 0 && at+1 < len(v.out) && v.out[at+1].Role == model.ToolRole {
		return 2
	}
	return 1
}

// Leaves is the messages that a folding leaves out.
func (v *View) Leaves(f Fold) []model.Message {
	return v.out[v.head:min(max(v.place(f.Dropped+1), v.head), len(v.out))]
}

// Apply does a folding. One that does not fit the view does nothing that it cannot.
func (v *View) Apply(f Fold) {
	v.Fit(f.Tokens)
	if len(v.out) == 0 {
		return
	}
	leaves := v.Leaves(f)
	for _, m := range leaves {
		if m.Role == model.User && !m.Harness {
			v.said = append(v.said, m.Text)
		}
	}
	v.said = lastOf(v.said, maxSaid)
	rest := v.out[v.head+len(leaves):]
	out := make([]model.Message, 0, len(rest)+64)
	out = append(out, v.out[0])
	v.dropped += len(leaves)
	if v.dropped > 0 {
		f.Dropped = v.dropped
		out = append(out, note(f, v.said))
	}
	v.head = len(out)
	v.out = append(out, rest...)
	v.folded = max(v.folded, f.Results)
	v.size, v.pictures = 0, 0
	for i := range v.out {
		switch {
		case f.Blind:
			v.out[i] = v.out[i].Without("one of the images was refused by the provider")
		case i >= v.head && v.number(i) < f.Images:
			v.out[i] = v.out[i].Without(oldPicture)
		}
		if i >= v.head && v.number(i) < v.folded {
			v.out[i] = folded(v.out[i])
		}
		v.size += sizeOf(v.out[i])
		v.pictures += v.out[i].Pictures()
	}
	for key, r := range v.reads {
		if r.number < max(v.folded, f.Images) || f.Blind {
			delete(v.reads, key)
		}
	}
}

const (
	foldedMark = "\n[folded: "
	oldPicture = "it is an old one; read it again to see it"
)

// folded is a message whose long results are a line, and its images notes.
func folded(m model.Message) model.Message {
	m = m.Without(oldPicture)
	if len(m.Results) == 0 {
		return m
	}
	results := make([]model.ToolResult, len(m.Results))
	for i, r := range m.Results {
		if len(r.Text) > 300 && !strings.Contains(r.Text[max(0, len(r.Text)-100):], foldedMark) {
			first, _, _ := strings.Cut(r.Text, "\n")
			r.Text = strings.ToValidUTF8(fmt.Sprintf("%.160s%s%d bytes; run the tool again to see it]", first, foldedMark, len(r.Text)), "")
		}
		results[i] = r
	}
	m.Results = results
	return m
}

// lastOf is the last texts, of at most n bytes together.
func lastOf(texts []string, n int) []string {
	for i := len(texts) - 1; i >= 0; i-- {
		if n -= len(texts[i]); n < 0 {
			return texts[i+1:]
		}
	}
	return texts
}
