package action

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// filePatch is what a patch does to one file.
type filePatch struct {
	kind     byte // 'a'dd, 'd'elete, 'u'pdate
	path, to string
	content  string // of an added file
	hunks    []hunk
}

// hunk replaces old by new, near line (0: anywhere), after a line that holds hint.
type hunk struct {
	old, new string
	line     int
	hint     string
	atEnd    bool
}

// PatchPaths is every path that a patch touches.
func PatchPaths(patch string) ([]string, error) {
	files, err := parsePatch(patch)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
		if f.to != "" {
			paths = append(paths, f.to)
		}
	}
	return paths, nil
}

// Patch applies a patch to all its files, or to none.
func Patch(_ context.Context, e Env, a *v1.ApplyPatchArgs) (*Outcome, error) {
	files, err := parsePatch(a.Patch)
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	now := map[string][]byte{} // content of files that the patch has changed already
	for _, f := range files {
		if err := e.patchFile(f, now, out); err != nil {
			return nil, contract.AsError(err).WithField("args.patch")
		}
	}
	return out, nil
}

func (e Env) patchFile(f filePatch, now map[string][]byte, out *Outcome) error {
	switch f.kind {
	case 'a':
		name, err := e.absent(f.path)
		if err != nil {
			return err
		}
		now[name] = []byte(f.content)
		out.Edits = append(out.Edits, workspace.Edit{Op: workspace.Write, Path: name, Data: []byte(f.content)})
		out.Text += "added " + name + "\n"
		return nil
	case 'd':
		name, err := e.local(f.path)
		if err != nil {
			return err
		}
		i, err := e.Root.Lstat(name)
		if err != nil {
			return e.missing(f.path, name, fs.ErrNotExist)
		}
		if i.IsDir() {
			return contract.Errorf(v1.Error_unsupported, "%s is a folder; a patch deletes files", f.path)
		}
		out.Edits = append(out.Edits, workspace.Edit{Op: workspace.Delete, Path: name})
		out.Text += "deleted " + name + "\n"
		return nil
	}
	name, data, info, err := e.load(f.path)
	if err != nil {
		return err
	}
	if d, ok := now[name]; ok {
		data = d
	} else if err := e.current(f.path, name, "", data); err != nil {
		return err
	}
	changed := data
	if len(f.hunks) > 0 {
		if changed, err = applyHunks(f.path, data, f.hunks); err != nil {
			return err
		}
	}
	now[name] = changed
	if f.to == "" || f.to == f.path {
		out.Edits = append(out.Edits, workspace.Edit{Op: workspace.Write, Path: name, Data: changed})
		out.Notes = append(out.Notes, e.linkNote(name)...)
		out.Text += fmt.Sprintf("changed %s, %d hunk%s\n", name, len(f.hunks), plural(len(f.hunks)))
		return nil
	}
	to, err := e.absent(f.to)
	if err != nil {
		return err
	}
	out.Edits = append(out.Edits, workspace.Edit{Op: workspace.Delete, Path: name},
		workspace.Edit{Op: workspace.Write, Path: to, Data: changed, Mode: info.Mode().Perm()})
	out.Text += fmt.Sprintf("moved %s to %s\n", name, to)
	return nil
}

// absent is the name of a file that is not there yet, not even as a dead link.
func (e Env) absent(p string) (string, error) {
	name, err := e.local(p)
	if err != nil {
		return "", err
	}
	if _, err := e.Root.Lstat(name); err == nil {
		return "", contract.Errorf(v1.Error_already_exists, "%s is there already", p)
	}
	return e.newPath(p, name)
}

// applyHunks puts hunks in from top to bottom.
func applyHunks(name string, data []byte, hunks []hunk) ([]byte, error) {
	enc := encodingOf(data[:min(len(data), 8<<10)])
	text := string(data)
	switch enc {
	case binary:
		return nil, contract.Errorf(v1.Error_unsupported, "%s is a binary file", name)
	case utf16LE, utf16BE:
		text = decode16(data, enc)
	}
	at, shift := 0, 0
	for i, h := range hunks {
		s, err := place(text, h, at, shift)
		if err != nil {
			ce := contract.AsError(err)
			ce.Message = fmt.Sprintf("%s, hunk %d: %s", name, i+1, ce.Message)
			return nil, ce
		}
		fit := s.fit(text, h.new)
		if h.line > 0 {
			shift = lineOf(text, s.from) - h.line + strings.Count(h.new, "\n") - strings.Count(h.old, "\n")
		}
		text = text[:s.from] + fit + text[s.to:]
		at = s.from + len(fit)
		if h.old != "" && h.new == h.old {
			at = s.from
		}
	}
	if enc == utf16LE || enc == utf16BE {
		return encode16(text, enc), nil
	}
	return []byte(text), nil
}

// place finds where a hunk goes: at its line, else the only or the nearest place after the last hunk.
func place(text string, h hunk, from, shift int) (span, error) {
	if h.hint != "" {
		i := strings.Index(text[from:], h.hint)
		if i < 0 {
			return span{}, contract.Errorf(v1.Error_no_match, "no line has %q", h.hint)
		}
		from += i
	}
	if h.old == "" {
		return insertion(text, h, from), nil
	}
	spans := wholeLines(text, h.old, from)
	if len(spans) == 0 {
		spans = wholeLines(text, h.old, 0) // hunks that share context lines
		if len(spans) != 1 {
			spans = nil
		}
	}
	if len(spans) == 0 {
		if loosely := loose(text, h.old); len(loosely) == 1 {
			return loosely[0], nil
		}
		return span{}, notFound("the file", text, h.old)
	}
	if h.atEnd {
		return spans[len(spans)-1], nil
	}
	if len(spans) == 1 || h.hint != "" {
		return spans[0], nil
	}
	if h.line == 0 {
		return span{}, ambiguous("the file", text, spans)
	}
	want := h.line + shift
	return slices.MinFunc(spans, func(a, b span) int { return abs(lineOf(text, a.from)-want) - abs(lineOf(text, b.from)-want) }), nil
}

func abs(n int) int { return max(n, -n) }

// insertion is where a hunk goes that takes nothing away.
func insertion(text string, h hunk, from int) span {
	at := len(text)
	switch {
	case h.hint != "":
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			at = from + i + 1
		}
	case h.line > 0:
		at = 0
		for n := 1; n < h.line+1; n++ {
			i := strings.IndexByte(text[at:], '\n')
			if i < 0 {
				at = len(text)
				break
			}
			at += i + 1
		}
	}
	return span{from: at, to: at}
}

// wholeLines is the places of old, from an offset on, that begin at a line's beginning.
func wholeLines(text, old string, from int) (spans []span) {
	all := exact(text, old)
	if len(all) == 0 {
		all = lineEnds(text, old)
	}
	if len(all) == 0 && strings.HasSuffix(old, "\n") { // a last line without its break
		if o := strings.TrimSuffix(old, "\n"); strings.HasSuffix(text, o) {
			all = []span{{from: len(text) - len(o), to: len(text)}}
		}
	}
	for _, s := range all {
		if s.from >= from && (s.from == 0 || text[s.from-1] == '\n') && (s.to == len(text) || strings.HasSuffix(old, "\n") || text[s.to] == '\n' || text[s.to] == '\r') {
			spans = append(spans, s)
		}
	}
	return spans
}
