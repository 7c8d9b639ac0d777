package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Journal is the outcomes of a suite's run in a file, a JSON object a line. A
// line is on disk before its cell counts as done; one that a crash cut short is
// dropped when the journal is opened again.
type Journal struct {
	mu   sync.Mutex
	f    *os.File
	done map[string]Outcome
}

// OpenJournal opens or makes the journal of a folder. Another process that has
// it open is an error.
func OpenJournal(dir string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "results.jsonl"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{f: f, done: map[string]Outcome{}}
	if err := j.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *Journal) read() error {
	if err := lock(j.f); err != nil {
		return fmt.Errorf("%s: another evaluation is at work on it: %w", j.f.Name(), err)
	}
	data, err := os.ReadFile(j.f.Name())
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	n := 0
	for line := range bytes.Lines(data[:whole]) {
		n++
		var o Outcome
		if err := json.Unmarshal(line, &o); err != nil || o.ID == "" {
			return fmt.Errorf("%s:%d: not an outcome: %w", j.f.Name(), n, err)
		}
		j.done[o.ID] = o
	}
	if err := j.f.Truncate(int64(whole)); err != nil {
		return err
	}
	_, err = j.f.Seek(int64(whole), 0)
	return err
}

// Add appends an outcome and makes it durable. A later one of the same cell replaces an earlier.
func (j *Journal) Add(o Outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := j.f.Sync(); err != nil {
		return err
	}
	j.done[o.ID] = o
	return nil
}

// Done says whether a cell has been judged.
func (j *Journal) Done(c Cell) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	o, ok := j.done[c.ID()]
	return ok && o.Class != Error
}

// Outcomes are those of the cells, in their order; cells that have none are left out.
func (j *Journal) Outcomes(cells []Cell) []Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []Outcome
	for _, c := range cells {
		if o, ok := j.done[c.ID()]; ok {
			list = append(list, o)
		}
	}
	return list
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }
