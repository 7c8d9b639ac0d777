package openai

import "strings"

// thinking parts a stream into the words and the thoughts before them, which
// some servers leave between think tags at its beginning.
type thinking struct {
	held  string // may be the beginning of a tag
	stage int    // 0 before the first word, 1 in thoughts, 2 after them
	found bool
}

const (
	opening = "<think>"
	closing = "</think>"
)

func (t *thinking) split(piece string) (text, reasoning string) {
	t.held += piece
	if t.stage == 0 {
		start := strings.TrimLeft(t.held, " \r\n\t")
		if start == "" || start != opening && strings.HasPrefix(opening, start) {
			return "", ""
		}
		t.stage = 2
		if rest, ok := strings.CutPrefix(start, opening); ok {
			t.stage, t.found, t.held = 1, true, rest
		}
	}
	if t.stage == 1 {
		before, after, ok := strings.Cut(t.held, closing)
		if !ok {
			n := len(t.held) - partial(t.held)
			reasoning, t.held = t.held[:n], t.held[n:]
			return "", reasoning
		}
		t.stage, t.held, reasoning = 2, after, before
	}
	text, t.held = t.held, ""
	return text, reasoning
}

// end is what was still held when the stream ended.
func (t *thinking) end() (text, reasoning string) {
	if t.stage == 1 {
		return "", t.held
	}
	return t.held, ""
}

// partial is how many bytes at the end of s may begin a closing tag.
func partial(s string) int {
	for n := min(len(s), len(closing)-1); n > 0; n-- {
		if strings.HasSuffix(s, closing[:n]) {
			return n
		}
	}
	return 0
}
