package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Finding is one thing that is wrong with a log. Line counts from 0, as the
// records do, in the log as it was written.
type Finding struct {
	Line    int64  `json:"line"`
	Problem string `json:"problem"` // changed, removed, inserted, reordered, cut off, rewritten, unreadable, foreign
	Text    string `json:"text"`
}

// Report is what verifying a log found.
type Report struct {
	Session  string    `json:"session"`
	Lines    int64     `json:"lines"`
	Signed   int64     `json:"signed"`    // lines that the newest head vouches for
	Witness  int       `json:"witnesses"` // heads that others kept and that were held against it
	Findings []Finding `json:"findings"`
}

func (r *Report) find(line int64, problem, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{line, problem, fmt.Sprintf(format, args...)})
}

// written is a log as the file has it.
type written struct {
	leaves []tlog.Hash
	claims []int64 // the number that each line gives itself, -1 for none
	heads  []placed
	torn   bool // the last line has no end
}

type placed struct {
	head
	at    int64
	exact bool // the line is written just as this executor writes it
}

// Verify checks the log of a session with the executor's public key, and
// against heads that others kept.
func Verify(dir, session, public string, witnesses []string) (*Report, error) {
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return nil, fmt.Errorf("the public key: %w", err)
	}
	v := &verification{report: &Report{Session: session}, origin: origin(session), known: note.VerifierList(verifier)}
	w, err := read(filepath.Join(dir, File))
	if errors.Is(err, os.ErrNotExist) {
		w, err = &written{}, nil
	}
	if err != nil {
		return nil, err
	}
	v.report.Lines = int64(len(w.leaves))
	wanted := v.witnesses(witnesses)
	if !v.clean(w) {
		w.leaves = v.locate(w)
	}
	v.compare(w.leaves, wanted)
	return v.report, nil
}

func read(path string) (*written, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := &written{}
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long := bytes.Clone(line)
			line, err = in.ReadBytes('\n')
			line = append(long, line...)
		}
		if err == io.EOF {
			w.torn = len(line) > 0
			return w, nil
		}
		if err != nil {
			return nil, err
		}
		line = line[:len(line)-1]
		claim := claimed(line)
		if h, ok := parseHead(line); ok {
			claim = h.tree.N
			exact := bytes.Equal(line, headLine(h.note, h.leaves))
			w.heads = append(w.heads, placed{h, int64(len(w.leaves)), exact})
		}
		w.leaves, w.claims = append(w.leaves, tlog.RecordHash(line)), append(w.claims, claim)
	}
}

// claimed is the number that a record begins with.
func claimed(line []byte) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"n":`))
	digits, _, cut := bytes.Cut(rest, []byte(","))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if !ok || !cut || err != nil {
		return -1
	}
	return n
}

type verification struct {
	report *Report
	origin string
	known  note.Verifiers
}

// signed says whether a head is this executor's word on this log.
func (v *verification) signed(text string) bool {
	n, err := note.Open([]byte(text), v.known)
	return err == nil && strings.HasPrefix(n.Text, v.origin+"\n")
}

func (v *verification) vouches(h placed) bool {
	lines := strings.SplitN(h.note, "\n", 5)
	return v.signed(h.note) && h.exact && len(lines) == 5 && lines[3] == leavesDigest(h.leaves)
}

// clean says whether every line is where and what the newest head says. One
// signature is enough for that: each earlier head is a line under a later one.
func (v *verification) clean(w *written) bool {
	var t tree
	var since int64
	next := 0
	for i, leaf := range w.leaves {
		if next < len(w.heads) && w.heads[next].at == int64(i) {
			h := w.heads[next]
			if h.tree.N != t.n || h.tree.Hash != t.root() || !same(h.leaves, w.leaves[since:i]) {
				return false
			}
			since = int64(i)
			next++
		}
		t.add(leaf)
	}
	end := int64(0)
	if next > 0 {
		last := w.heads[next-1]
		if v.report.Signed = last.at; !v.vouches(last) {
			return false
		}
		end = last.at + 1
	}
	for i := end; i < int64(len(w.claims)); i++ {
		if w.claims[i] != i {
			return false
		}
	}
	return true
}

func same(a, b []tlog.Hash) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// witnesses takes the heads that others kept apart: size → root.
func (v *verification) witnesses(heads []string) map[int64]tlog.Hash {
	wanted := map[int64]tlog.Hash{}
	for _, text := range heads {
		_, t, ok := parseNote(text)
		if !ok || !v.signed(text) {
			v.report.find(t.N, "foreign", "a witness has a head of %d lines that this executor's key did not sign", t.N)
			continue
		}
		v.report.Witness++
		if was, ok := wanted[t.N]; ok && was != t.Hash {
			v.report.find(t.N, "rewritten", "witnesses saw two different logs of %d lines", t.N)
		}
		wanted[t.N] = t.Hash
	}
	return wanted
}

// compare holds the log against what the witnesses saw.
func (v *verification) compare(leaves []tlog.Hash, wanted map[int64]tlog.Hash) {
	var t tree
	check := func() {
		if root, ok := wanted[t.n]; ok && root != t.root() {
			v.report.find(t.n, "rewritten", "a witness saw another log: its first %d lines were not these", t.n)
		}
	}
	for _, leaf := range leaves {
		check()
		t.add(leaf)
	}
	check()
	longest := int64(-1)
	for n := range wanted {
		longest = max(longest, n)
	}
	if longest >= t.n { // the head that it saw is line longest
		v.report.find(t.n, "cut off", "lines %d to %d are gone: a witness saw the head that is line %d", t.n, longest, longest)
	}
}
