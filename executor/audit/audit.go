// Package audit is the executor's own record of a session: every step, verdict,
// approval, program, connection and change, in the order in which they came, as
// an append-only Merkle log whose heads are signed.
//
// A log is one file, audit.jsonl in the session's folder, one JSON object a
// line. Line n is leaf n of the tree (RFC 6962 hashes). Some lines are heads: a
// signed note over the tree of all lines before it, and the hashes of the lines
// since the head before. So the newest head vouches for every line, one by one,
// and a damaged line can be named. Each step's result carries the head after
// it; whoever keeps results, as a planner does, is a witness of the log.
//
// A line is in the file when Add or Seal returns: it survives a kill of the
// process at the next instant.
package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// File is the log's name in a session's folder.
const File = "audit.jsonl"

// Log is one session's log, open for appending. The session's lease keeps
// other processes from it.
type Log struct {
	mu     sync.Mutex
	f      *os.File
	size   int64 // bytes
	tree   tree
	leaves []tlog.Hash // since the last head
	later  []Record
	origin string
	key    *Key
	waived []string
}

// Open opens or makes the log of a session; waived stands in each record from now on. What a kill left of an unfinished
// line is taken off and said so in the log; a log that was changed is an error.
func Open(dir, session string, key *Key, waived ...string) (*Log, error) {
	path := filepath.Join(dir, File)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	l := &Log{f: f, origin: origin(session), key: key, waived: waived}
	torn, err := l.load()
	if err == nil && torn > 0 {
		_, err = l.Seal(Record{Kind: Recovered, Note: fmt.Sprintf("%d bytes of an unfinished line were taken off", torn)})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the audit log %s: %w", path, err), f.Close())
	}
	return l, nil
}

// load reads the log through: its tree, and whether its last head is right.
func (l *Log) load() (torn int64, err error) {
	in := bufio.NewReaderSize(l.f, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			torn = int64(len(line))
			break
		}
		if err != nil {
			return 0, err
		}
		l.size += int64(len(line))
		if err := l.replay(line[:len(line)-1]); err != nil {
			return 0, err
		}
	}
	return torn, l.f.Truncate(l.size)
}

func (l *Log) replay(line []byte) error {
	if h, ok := parseHead(line); ok {
		if h.tree.N != l.tree.n || h.tree.Hash != l.tree.root() {
			return fmt.Errorf("it was changed before line %d (harness audit verify says where); move it away to go on with a new one", l.tree.n)
		}
		l.leaves = l.leaves[:0]
	}
	leaf := tlog.RecordHash(line)
	l.tree.add(leaf)
	l.leaves = append(l.leaves, leaf)
	return nil
}

// Add appends records.
func (l *Log) Add(records ...Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.append(records, false)
	return err
}

// Seal appends records and a head over everything up to them, which it returns.
func (l *Log) Seal(records ...Record) (head string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(records, true)
}

// Later appends a record together with the next ones: what nothing follows
// from needs no line.
func (l *Log) Later(r Record) {
	r.Time = time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later = append(l.later, r)
}

// append puts all lines into the file with one write; where that fails the log
// is as before.
func (l *Log) append(records []Record, seal bool) (head string, err error) {
	var buf bytes.Buffer
	tree, leaves := l.tree, l.leaves[:len(l.leaves):len(l.leaves)]
	put := func(line []byte) {
		leaf := tlog.RecordHash(line)
		tree.add(leaf)
		leaves = append(leaves, leaf)
		buf.Write(line)
		buf.WriteByte('\n')
	}
	for _, r := range append(l.later[:len(l.later):len(l.later)], records...) {
		r.N, r.Waived = tree.n, l.waived
		if r.Time.IsZero() {
			r.Time = time.Now().UTC()
		}
		line, err := l.key.line(r)
		if err != nil {
			return "", err
		}
		put(line)
	}
	if seal {
		signed, err := note.Sign(&note.Note{Text: headText(l.origin, tree.n, tree.root(), leaves)}, l.key.signer)
		if err != nil {
			return "", err
		}
		head = string(signed)
		line, since := headLine(head, leaves), len(leaves)
		put(line)
		leaves = leaves[since:]
	}
	if _, err := l.f.WriteAt(buf.Bytes(), l.size); err != nil {
		return "", errors.Join(fmt.Errorf("the audit log: %w", err), l.f.Truncate(l.size))
	}
	l.size += int64(buf.Len())
	l.tree, l.leaves, l.later = tree, leaves, nil
	return head, nil
}

// Close closes the log.
func (l *Log) Close() error { return l.f.Close() }
