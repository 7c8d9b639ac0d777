package action

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// Edit replaces exact text. Every byte outside of what is replaced stays.
func Edit(_ context.Context, e Env, a *v1.EditFileArgs) (*Outcome, error) {
	if a.OldString == a.NewString {
		return nil, contract.Errorf(v1.Error_invalid, "old_string and new_string are the same: nothing would change").WithField("args.new_string")
	}
	name, was, _, err := e.load(a.Path)
	if err != nil {
		if a.OldString == "" && contract.AsError(err).Kind == v1.Error_not_found {
			return nil, contract.AsError(err).WithHint("write_file creates a file")
		}
		return nil, err
	}
	if err := e.current(a.Path, name, a.BaseDigest, was); err != nil {
		return nil, err
	}
	if a.OldString == "" {
		return nil, contract.Errorf(v1.Error_invalid, "old_string is empty").WithField("args.old_string").WithHint("give the text to replace; write_file replaces a whole file")
	}
	out, n, note, err := replaceIn(a.Path, was, a.OldString, a.NewString, a.ReplaceAll)
	if err != nil {
		return nil, err
	}
	o := &Outcome{File: info(name, out), Edits: []workspace.Edit{{Op: workspace.Write, Path: name, Data: out}}, Notes: e.linkNote(name)}
	if note != "" {
		o.Notes = append(o.Notes, note)
	}
	o.Text = fmt.Sprintf("%s: %d place%s replaced\n", name, n, plural(n))
	return o, nil
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// replaceIn replaces old by new in a file's bytes, in the file's own encoding
// and line ends. n is the number of places.
func replaceIn(name string, data []byte, old, new string, all bool) (out []byte, n int, note string, err error) {
	enc := encodingOf(data[:min(len(data), 8<<10)])
	text := string(data)
	switch enc {
	case binary:
		return nil, 0, "", contract.Errorf(v1.Error_unsupported, "%s is a binary file; it was left as it is", name).WithField("args.path")
	case utf16LE, utf16BE:
		text = decode16(data, enc)
		if !bytes.Equal(encode16(text, enc), data) {
			return nil, 0, "", contract.Errorf(v1.Error_unsupported, "%s is not whole %s text; it was left as it is", name, enc).WithField("args.path")
		}
	}
	spans, note, err := find(name, text, old, all)
	if err != nil {
		return nil, 0, "", err
	}
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.from])
		b.WriteString(s.fit(text, new))
		at = s.to
	}
	b.WriteString(text[at:])
	if enc == utf16LE || enc == utf16BE {
		return encode16(b.String(), enc), len(spans), note, nil
	}
	return []byte(b.String()), len(spans), note, nil
}

// span is a place in a text; ends are the line ends that the search ignored.
type span struct {
	from, to int
	indent   string // put before each line of the new text, where the old one stood deeper
}

// fit is the new text with the line ends of the place.
func (s span) fit(text, new string) string {
	if s.indent != "" {
		lines := strings.Split(new, "\n")
		for i, l := range lines {
			if strings.TrimSpace(l) != "" {
				lines[i] = s.indent + l
			}
		}
		new = strings.Join(lines, "\n")
	}
	if strings.Contains(new, "\r\n") || !strings.Contains(new, "\n") {
		return new
	}
	around := text[s.from:s.to]
	if !strings.Contains(around, "\n") { // the line that the place is in, else the one before
		if i := strings.IndexByte(text[s.to:], '\n'); i >= 0 {
			around = text[s.from : s.to+i+1]
		} else if i := strings.LastIndexByte(text[:s.from], '\n'); i >= 0 {
			around = text[max(0, i-1) : i+1]
		}
	}
	if crlf := strings.Count(around, "\r\n"); crlf == 0 || crlf < strings.Count(around, "\n") {
		return new
	}
	return strings.ReplaceAll(new, "\n", "\r\n")
}

// find is the places of old in text: one, or all of them.
func find(name, text, old string, all bool) ([]span, string, error) {
	spans := exact(text, old)
	if len(spans) == 0 && strings.Contains(old, "\n") {
		spans = lineEnds(text, old)
	}
	if len(spans) == 1 || len(spans) > 1 && all {
		return spans, "", nil
	}
	if len(spans) > 1 {
		return nil, "", ambiguous(name, text, spans)
	}
	spans = loose(text, old)
	switch {
	case len(spans) == 1 && !all:
		return spans, fmt.Sprintf("matched at line %d with other white space than in old_string", lineOf(text, spans[0].from)), nil
	case len(spans) > 1:
		return nil, "", ambiguous(name, text, spans)
	}
	return nil, "", notFound(name, text, old)
}

func ambiguous(name, text string, spans []span) error {
	var at []string
	for _, s := range spans {
		if len(at) == 20 {
			at = append(at, "…")
			break
		}
		at = append(at, fmt.Sprint(lineOf(text, s.from)))
	}
	return contract.Errorf(v1.Error_ambiguous, "old_string occurs %d times in %s, at lines %s", len(spans), name, strings.Join(at, ", ")).
		WithField("args.old_string").WithHint("give more of the text around it, or replace_all")
}

// exact is the places of old, none overlapping another.
func exact(text, old string) (spans []span) {
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			return spans
		}
		spans = append(spans, span{from: at + i, to: at + i + len(old)})
		at += i + len(old)
	}
}

// lineEnds is exact with CR LF and LF taken as the same.
func lineEnds(text, old string) (spans []span) {
	plain, back := unix(text)
	o, _ := unix(old)
	for _, s := range exact(plain, o) {
		spans = append(spans, span{from: back(s.from), to: back(s.to)})
	}
	return spans
}

// unix is a text with LF line ends, and the way from its offsets back.
func unix(text string) (string, func(int) int) {
	var b strings.Builder
	var dropped []int // offsets in the new text before which a CR was dropped
	for i := 0; i < len(text); i++ {
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			dropped = append(dropped, b.Len())
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String(), func(at int) int {
		n := 0
		for n < len(dropped) && dropped[n] < at {
			n++
		}
		return at + n
	}
}

// loose is the places whose lines equal old's lines but for the white space
// at their ends and one common deeper indentation.
func loose(text, old string) (spans []span) {
	want := strings.Split(strings.TrimRight(old, "\r\n"), "\n")
	if strings.TrimSpace(old) == "" {
		return nil
	}
	var starts []int
	var have []string
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		starts = append(starts, at)
		have = append(have, text[at:at+end])
		at += end + 1
	}
	starts = append(starts, len(text))
	for i := 0; i+len(want) <= len(have); i++ {
		indent, ok := alike(have[i:i+len(want)], want)
		if !ok {
			continue
		}
		last := i + len(want) - 1
		to := starts[last] + len(strings.TrimSuffix(have[last], "\r"))
		if strings.HasSuffix(old, "\n") && starts[last+1] > starts[last] {
			to = starts[last+1]
		}
		spans = append(spans, span{from: starts[i], to: to, indent: indent})
	}
	return spans
}

func alike(have, want []string) (indent string, ok bool) {
	first := true
	for i, w := range want {
		h, w := strings.TrimRight(have[i], " \t\r"), strings.TrimRight(w, " \t\r")
		if h == "" && w == "" {
			continue
		}
		d, ok := strings.CutSuffix(h, w)
		if !ok || strings.TrimSpace(d) != "" || w == "" {
			return "", false
		}
		if first {
			indent, first = d, false
		}
		if d != indent {
			return "", false
		}
	}
	return indent, !first
}

// notFound shows the lines of the file that are most like old's.
func notFound(name, text, old string) error {
	e := contract.Errorf(v1.Error_no_match, "old_string is not in %s", name).WithField("args.old_string")
	if strings.TrimSpace(text) == "" {
		e.Message += ", which is empty"
		return e
	}
	lines := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(old, "\r\n"), "\n")
	best, score := -1, 0.0
	for i, l := range lines {
		if s := similarity(l, want[0]); s > score {
			best, score = i, s
		}
	}
	if best < 0 || score < 0.4 {
		return e.WithHint("read the file again; nothing in it is near the text")
	}
	var b strings.Builder
	for i := best; i < min(len(lines), best+min(len(want), 8)); i++ {
		fmt.Fprintf(&b, "\n%6d\t%.300s", i+1, strings.TrimRight(lines[i], "\r"))
	}
	hint := "copy it from there"
	if plainQuotes(lines[best]) != lines[best] && strings.Contains(plainQuotes(lines[best]), strings.TrimSpace(plainQuotes(want[0]))) {
		hint = "the file has other quotes or dashes than old_string; copy them from there"
	}
	e.Message += "; the nearest text is:" + b.String() + "\n"
	return e.WithHint("%s", hint)
}

var quotes = strings.NewReplacer("\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'", "\u2013", "-", "\u2014", "-", "\u00a0", " ", "\u2212", "-")

func plainQuotes(s string) string { return quotes.Replace(s) }

// similarity is the share of b's pairs of letters that a has too.
func similarity(a, b string) float64 {
	a, b = strings.TrimSpace(plainQuotes(a)), strings.TrimSpace(plainQuotes(b))
	if a == b && a != "" {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	have := map[string]int{}
	for i := 0; i+2 <= min(len(a), 400); i++ {
		have[a[i:i+2]]++
	}
	n, total := 0, 0
	for i := 0; i+2 <= min(len(b), 400); i++ {
		total++
		if have[b[i:i+2]] > 0 {
			have[b[i:i+2]]--
			n++
		}
	}
	return 2 * float64(n) / float64(total+min(len(a), 400)-1)
}
