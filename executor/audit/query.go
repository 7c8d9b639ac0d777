package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is a record and the session whose log it is in.
type Entry struct {
	Session string `json:"session"`
	Record
}

// Query says which records are wanted; an empty field asks for nothing.
type Query struct {
	Session, Step string
	Since, Until  time.Time
	Program       string // a name or a whole path
	Path          string // of a changed file, or a folder above it
	Host          string // or a domain above it
}

// Sessions is the sessions that have a log in an executor's state folder.
func Sessions(state string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(state, "sessions", "*", File))
	for i, l := range logs {
		logs[i] = filepath.Base(filepath.Dir(l))
	}
	return logs, err
}

// Dir is where a session's log lies.
func Dir(state, session string) string { return filepath.Join(state, "sessions", session) }

// Each gives out what a query asks for, session by session, in order. A line
// that is no record is passed over: Verify names it.
func Each(state string, q Query, give func(Entry) error) error {
	sessions, err := Sessions(state)
	if err != nil {
		return err
	}
	for _, id := range sessions {
		if q.Session != "" && q.Session != id {
			continue
		}
		if err := each(Dir(state, id), func(r Record) error {
			if !q.wants(r) {
				return nil
			}
			return give(Entry{id, r})
		}); err != nil {
			return err
		}
	}
	return nil
}

func each(dir string, give func(Record) error) error {
	f, err := os.Open(filepath.Join(dir, File))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r Record
		if strings.HasPrefix(string(line), headPrefix) || json.Unmarshal(line, &r) != nil {
			continue
		}
		if err := give(r); err != nil {
			return err
		}
	}
}

func (q Query) wants(r Record) bool {
	switch {
	case q.Step != "" && r.Step != q.Step,
		!q.Since.IsZero() && r.Time.Before(q.Since),
		!q.Until.IsZero() && r.Time.After(q.Until),
		q.Program != "" && r.Program != q.Program && path.Base(r.Program) != q.Program,
		q.Host != "" && r.Host != q.Host && !strings.HasSuffix(r.Host, "."+q.Host),
		q.Path != "" && !r.touches(q.Path):
		return false
	}
	return true
}

// touches says whether a record changed a path, named one below it, or asked for it.
func (r Record) touches(p string) bool {
	p = path.Clean(filepath.ToSlash(p))
	below := func(x string) bool { return x == p || strings.HasPrefix(x, p+"/") }
	if arg, ok := r.Args["path"].(string); ok && below(arg) {
		return true
	}
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return below(c.Path) })
}
