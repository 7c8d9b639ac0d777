package action

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/workspace"
)

// How much a search shows.
const (
	defaultMatches = 200
	maxMatchLine   = 400
	maxSearched    = 64 << 20 // bytes of one file
)

// Search finds lines by a regular expression.
func Search(ctx context.Context, e Env, a *v1.SearchArgs) (*Outcome, error) {
	m, err := newMatcher(a)
	if err != nil {
		return nil, err
	}
	if a.Glob != "" && !doublestar.ValidatePattern(a.Glob) {
		return nil, contract.Errorf(v1.Error_invalid, "%q is no glob", a.Glob).WithField("args.glob")
	}
	start, info, err := e.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	s := &search{e: e, a: a, m: m, limit: int(a.Limit)}
	if s.limit == 0 {
		s.limit = defaultMatches
	}
	if info.IsDir() {
		return s.tree(ctx, start)
	}
	f, err := e.Root.Open(start)
	if err != nil {
		return nil, e.missing(a.Path, start, err)
	}
	s.collect(s.file(start, f))
	return s.outcome(), nil
}

type search struct {
	e     Env
	a     *v1.SearchArgs
	m     *matcher
	limit int
	text  strings.Builder
	shown int
	found int
	files int
}

// hits is what one file has.
type hits struct {
	text  string
	lines int
}

// tree searches files side by side and shows them in the order of the walk.
func (s *search) tree(ctx context.Context, start string) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		name string
		file *os.File
		done chan hits
	}
	work, order := make(chan job, 64), make(chan job, 256)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range work {
				j.done <- s.file(j.name, j.file)
			}
		})
	}
	var walkErr error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		walkErr = s.e.walk(ctx, start, s.a.IncludeIgnored, 0, func(dir *workspace.Folder, name string, d fs.DirEntry) error {
			if !d.Type().IsRegular() || s.a.Glob != "" && !globbed(s.a.Glob, start, name) {
				return nil
			}
			f, err := dir.Open(d.Name())
			if err != nil {
				return nil // unreadable or gone meanwhile
			}
			j := job{name, f, make(chan hits, 1)}
			select {
			case order <- j:
			case <-ctx.Done():
				f.Close()
				return ctx.Err()
			}
			select {
			case work <- j:
				return nil
			case <-ctx.Done():
				f.Close()
				j.done <- hits{}
				return ctx.Err()
			}
		})
	})
	enough := false
	for j := range order {
		h := <-j.done
		if !enough {
			s.collect(h)
			if s.shown >= s.limit && s.found > s.limit {
				enough = true
				cancel()
			}
		}
	}
	wg.Wait()
	if walkErr != nil && !enough {
		return nil, walkErr
	}
	return s.outcome(), nil
}

func (s *search) collect(h hits) {
	if h.lines == 0 {
		return
	}
	s.files++
	s.found += h.lines
	if s.shown < s.limit && s.text.Len() < maxText {
		s.text.WriteString(h.text)
		s.shown += h.lines
	}
}

func (s *search) outcome() *Outcome {
	text := s.text.String()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "\n[cut here]\n"
	}
	switch {
	case s.found == 0:
		text = "no match\n"
	case s.found > s.shown || s.shown > s.limit:
		text += fmt.Sprintf("[at least %d matches; narrow it with path or glob, or raise limit]\n", s.found)
	}
	return &Outcome{Text: text}
}

// buffers are for files as they are searched, one after another.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxBuffer is the largest buffer that is kept for the next file.
const maxBuffer = 1 << 20

// file is the matching lines of one file, at most limit and one more. It closes f.
func (s *search) file(name string, f *os.File) hits {
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > maxSearched || !info.Mode().IsRegular() {
		return hits{}
	}
	b := buffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= maxBuffer {
			buffers.Put(b)
		}
	}()
	b.Reset()
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, maxSearched)); err != nil {
		return hits{}
	}
	data := b.Bytes()
	enc := encodingOf(data[:min(len(data), 8<<10)])
	if enc == utf16LE || enc == utf16BE {
		data = []byte(decode16(data, enc))
	}
	if enc == binary {
		if from, _ := s.m.next(data, 0); from >= 0 {
			return hits{text: name + ": a binary file matches\n", lines: 1}
		}
		return hits{}
	}
	return s.lines(name, data)
}

func (s *search) lines(name string, data []byte) hits {
	var b strings.Builder
	var h hits
	lineNo, counted, shownTo := 1, 0, 0
	for at := 0; at < len(data) && h.lines <= s.limit; {
		from, to := s.m.next(data, at)
		if from < 0 {
			break
		}
		lineNo += bytes.Count(data[counted:from], []byte{'\n'})
		counted = from
		h.lines++
		s.show(&b, name, data, from, lineNo, int(s.a.Context), &shownTo)
		at = to + 1
	}
	h.text = b.String()
	return h
}

// show writes a matching line with its context, no line twice.
func (s *search) show(b *strings.Builder, name string, data []byte, from, lineNo, context int, shownTo *int) {
	first, at := lineNo, from
	for first > 1 && lineNo-first < context && first-1 > *shownTo {
		first--
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	if first > *shownTo+1 && *shownTo > 0 && context > 0 {
		b.WriteString("--\n")
	}
	for n := first; n <= lineNo+context && at < len(data); n++ {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data) - at
		}
		if n > *shownTo {
			mark := byte('-')
			if n == lineNo {
				mark = ':'
			}
			line := bytes.TrimSuffix(data[at:at+end], []byte{'\r'})
			cut := ""
			if len(line) > maxMatchLine {
				cut = fmt.Sprintf(" [… %d bytes]", len(line)-maxMatchLine)
				line = line[:maxMatchLine]
			}
			fmt.Fprintf(b, "%s%c%d%c%s%s\n", name, mark, n, mark, line, cut)
			*shownTo = n
		}
		at += end + 1
	}
}
