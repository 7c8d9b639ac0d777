package action

import (
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// parsePatch reads either form of a patch.
func parsePatch(patch string) ([]filePatch, error) {
	var files []filePatch
	var err error
	if strings.Contains(patch, "*** Begin Patch") {
		files, err = parseBegin(patch)
	} else {
		files, err = parseUnified(patch)
	}
	if err != nil {
		return nil, contract.AsError(err).WithField("args.patch")
	}
	if len(files) == 0 {
		return nil, contract.Errorf(v1.Error_invalid, "there is no change in the patch").WithField("args.patch").
			WithHint("a unified diff, or *** Begin Patch … *** End Patch")
	}
	for _, f := range files {
		for _, p := range []string{f.path, f.to} {
			if strings.ContainsRune(p, 0) || len(p) > contract.MaxPath {
				return nil, contract.Errorf(v1.Error_invalid, "%.40q… is no path", p).WithField("args.patch")
			}
		}
	}
	return files, nil
}

// parseUnified reads a unified diff, with or without git's headers.
func parseUnified(patch string) ([]filePatch, error) {
	if !strings.HasSuffix(patch, "\n") {
		patch += "\n"
	}
	parsed, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, contract.Errorf(v1.Error_invalid, "the diff cannot be read: %v", err).
			WithHint("the counts in @@ lines must be right; the *** Begin Patch form needs none")
	}
	var files []filePatch
	for _, p := range parsed {
		if p.IsBinary {
			return nil, contract.Errorf(v1.Error_unsupported, "%s: binary patches are not taken", p.NewName)
		}
		f := filePatch{kind: 'u', path: p.OldName}
		switch {
		case p.IsNew || p.OldName == "":
			f.kind, f.path = 'a', p.NewName
		case p.IsDelete || p.NewName == "":
			f.kind = 'd'
		case p.NewName != p.OldName:
			f.to = p.NewName
		}
		for _, frag := range p.TextFragments {
			var h hunk
			for _, l := range frag.Lines {
				if l.Old() {
					h.old += l.Line
				}
				if l.New() {
					h.new += l.Line
				}
			}
			h.line = int(frag.OldPosition)
			f.hunks = append(f.hunks, h)
			f.content += h.new
		}
		files = append(files, f)
	}
	return files, nil
}

// parseBegin reads the "*** Begin Patch" form.
func parseBegin(patch string) ([]filePatch, error) {
	var files []filePatch
	var cur *filePatch
	var h *hunk
	begun := false
	for line := range strings.Lines(patch) {
		text := strings.TrimRight(line, "\r\n")
		name := func(prefix string) (string, bool) {
			rest, ok := strings.CutPrefix(text, prefix)
			return strings.TrimSpace(rest), ok
		}
		if strings.TrimSpace(text) == "*** Begin Patch" {
			begun = true
			continue
		}
		if !begun {
			continue
		}
		if strings.TrimSpace(text) == "*** End Patch" {
			return finishBegin(files)
		}
		started := byte(0)
		var path string
		for prefix, kind := range map[string]byte{"*** Add File:": 'a', "*** Delete File:": 'd', "*** Update File:": 'u'} {
			if p, ok := name(prefix); ok {
				started, path = kind, p
			}
		}
		switch {
		case started != 0:
			if path == "" {
				return nil, contract.Errorf(v1.Error_invalid, "%q names no file", text)
			}
			files = append(files, filePatch{kind: started, path: path})
			cur, h = &files[len(files)-1], nil
		case cur == nil:
			if strings.TrimSpace(text) != "" {
				return nil, contract.Errorf(v1.Error_invalid, "%q stands before the first file", text)
			}
		case strings.HasPrefix(text, "*** Move to:"):
			cur.to, _ = name("*** Move to:")
		case text == "*** End of File":
			if h != nil {
				h.atEnd = true
			}
		case cur.kind == 'a':
			rest, ok := strings.CutPrefix(line, "+")
			if !ok && strings.TrimSpace(text) != "" {
				return nil, contract.Errorf(v1.Error_invalid, "%s: the line %q of a new file does not begin with +", cur.path, text)
			}
			cur.content += rest
		case cur.kind == 'd':
			if strings.TrimSpace(text) != "" {
				return nil, contract.Errorf(v1.Error_invalid, "%s is deleted: no line %q belongs there", cur.path, text)
			}
		case strings.HasPrefix(text, "@@"):
			cur.hunks = append(cur.hunks, hunk{hint: strings.Trim(strings.TrimPrefix(text, "@@"), " @")})
			h = &cur.hunks[len(cur.hunks)-1]
			if strings.HasPrefix(h.hint, "-") && strings.Contains(h.hint, "+") {
				h.hint = "" // a unified diff's line numbers
			}
		default:
			if h == nil {
				cur.hunks = append(cur.hunks, hunk{})
				h = &cur.hunks[len(cur.hunks)-1]
			}
			if text == "" {
				h.old += line
				h.new += line
				continue
			}
			switch line[0] {
			case '-':
				h.old += line[1:]
			case '+':
				h.new += line[1:]
			case ' ':
				h.old += line[1:]
				h.new += line[1:]
			default:
				return nil, contract.Errorf(v1.Error_invalid, "%s: the line %q begins with neither ' ', + nor -", cur.path, text)
			}
		}
	}
	if !begun {
		return nil, contract.Errorf(v1.Error_invalid, "*** Begin Patch does not stand on a line of its own")
	}
	return nil, contract.Errorf(v1.Error_invalid, "the patch has no *** End Patch: it may be cut off")
}

func finishBegin(files []filePatch) ([]filePatch, error) {
	for _, f := range files {
		if f.kind == 'u' && len(f.hunks) == 0 && f.to == "" {
			return nil, contract.Errorf(v1.Error_invalid, "%s is updated by no line", f.path)
		}
	}
	return files, nil
}
