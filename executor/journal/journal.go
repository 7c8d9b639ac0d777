// Package journal is the executor's durable memory of one session: each step
// from intent to outcome, the events of the session, and the approvals. It is
// an embedded SQLite database (WAL); a record written survives a kill of the
// process at the next instant.
package journal

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"google.golang.org/protobuf/proto"

	v1 "harness/contract/harness/v1"
)

const schema = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS step (
	step_id TEXT PRIMARY KEY, digest TEXT NOT NULL, step BLOB NOT NULL, result BLOB) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS unfinished ON step (step_id) WHERE result IS NULL;
CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS approval (
	approval_id TEXT PRIMARY KEY, step_id TEXT NOT NULL, body BLOB NOT NULL, decided BLOB);
CREATE TABLE IF NOT EXISTS taken_up (approval_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS approval_step ON approval (step_id);
`

// Journal is one session's database. Its methods may be called from many goroutines.
type Journal struct {
	dir   string
	owner string // the workspace that a new journal is bound to
	mu    sync.Mutex
	db    *sqlite3.Conn // nil until there is something to write or to read
	stmts map[string]*sqlite3.Stmt
	seq   uint64
}

// Open opens the journal in dir. A new one is made when the first record comes:
// a session without a step leaves none. It belongs to a workspace for good.
func Open(dir, workspace string) (*Journal, error) {
	j := &Journal{dir: dir, owner: workspace, stmts: map[string]*sqlite3.Stmt{}}
	if _, err := os.Stat(j.file()); errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	if err := j.connect(); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *Journal) file() string { return filepath.Join(j.dir, "journal.db") }

func (j *Journal) connect() error {
	db, err := sqlite3.Open("file:" + (&url.URL{Path: j.file()}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
	if err != nil {
		return fmt.Errorf("the journal in %s: %w", j.dir, err)
	}
	j.db = db
	// What is in the write-ahead log is as durable there; the next one who opens it goes on from it.
	if _, err = db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err == nil {
		err = db.Exec(schema)
	}
	if err == nil {
		err = j.query("INSERT INTO meta VALUES ('workspace', ?) ON CONFLICT DO NOTHING", []any{j.owner}, nil)
	}
	if err != nil {
		err = fmt.Errorf("the journal in %s is damaged or not ours: %w", j.dir, err)
	} else {
		err = j.query("SELECT coalesce(max(seq), 0) FROM event", nil, func(s *sqlite3.Stmt) error {
			j.seq = uint64(s.ColumnInt64(0))
			return nil
		})
	}
	if err != nil {
		return errors.Join(err, j.shut())
	}
	return nil
}

// Close closes the database.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return nil
	}
	return j.shut()
}

func (j *Journal) shut() error {
	var errs []error
	for _, s := range j.stmts {
		errs = append(errs, s.Close())
	}
	errs = append(errs, j.db.Close())
	clear(j.stmts)
	j.db = nil
	return errors.Join(errs...)
}

// query runs a prepared statement; the caller holds mu or is alone.
func (j *Journal) query(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	if j.db == nil {
		if strings.HasPrefix(sql, "SELECT") {
			return nil
		}
		if err := j.connect(); err != nil {
			return err
		}
	}
	s := j.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = j.db.Prepare(sql); err != nil {
			return err
		}
		j.stmts[sql] = s
	}
	defer s.Reset()
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			err = s.BindBlob(i+1, a)
		case uint64:
			err = s.BindInt64(i+1, int64(a))
		}
		if err != nil {
			return err
		}
	}
	for s.Step() {
		if row == nil {
			continue
		}
		if err := row(s); err != nil {
			return err
		}
	}
	return s.Err()
}

func (j *Journal) locked(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.query(sql, args, row)
}

// Workspace is the folder that the journal belongs to.
func (j *Journal) Workspace() (path string, err error) {
	path = j.owner
	err = j.locked("SELECT value FROM meta WHERE key = 'workspace'", nil, func(s *sqlite3.Stmt) error {
		path = s.ColumnText(0)
		return nil
	})
	return path, err
}

// Intent records that a step is about to be judged and run.
func (j *Journal) Intent(step *v1.Step, digest string) error {
	b, err := proto.Marshal(step)
	if err != nil {
		return err
	}
	return j.locked("INSERT INTO step (step_id, digest, step) VALUES (?, ?, ?)", []any{step.StepId, digest, b}, nil)
}

// Outcome records a step's result. A later one replaces it.
func (j *Journal) Outcome(result *v1.StepResult) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.outcome(result)
}

func (j *Journal) outcome(result *v1.StepResult) error {
	b, err := proto.Marshal(result)
	if err != nil {
		return err
	}
	return j.query("UPDATE step SET result = ? WHERE step_id = ?", []any{b, result.StepId}, nil)
}

// Finish records a step's result and the event of it, both or neither.
func (j *Journal) Finish(e *v1.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.query("BEGIN", nil, nil); err != nil {
		return err
	}
	seq := j.seq
	err := j.outcome(e.GetFinished())
	if err == nil {
		err = j.append(e)
	}
	if err == nil {
		err = j.query("COMMIT", nil, nil)
	}
	if err != nil {
		j.seq = seq
		return errors.Join(err, j.query("ROLLBACK", nil, nil))
	}
	return nil
}

// Step is the digest and result of a step; "" where it is not known, a nil
// result where it has none yet.
func (j *Journal) Step(stepID string) (digest string, step *v1.Step, result *v1.StepResult, err error) {
	err = j.locked("SELECT digest, step, result FROM step WHERE step_id = ?", []any{stepID}, func(s *sqlite3.Stmt) error {
		digest, step = s.ColumnText(0), new(v1.Step)
		if err := proto.Unmarshal(s.ColumnRawBlob(1), step); err != nil {
			return err
		}
		if s.ColumnType(2) == sqlite3.NULL {
			return nil
		}
		result = new(v1.StepResult)
		return proto.Unmarshal(s.ColumnRawBlob(2), result)
	})
	return digest, step, result, err
}

// Unfinished is the steps without a result.
func (j *Journal) Unfinished() (steps []*v1.Step, err error) {
	err = j.locked("SELECT step FROM step WHERE result IS NULL", nil, func(s *sqlite3.Stmt) error {
		step := new(v1.Step)
		steps = append(steps, step)
		return proto.Unmarshal(s.ColumnRawBlob(0), step)
	})
	return steps, err
}

// Append gives an event its number and records it.
func (j *Journal) Append(e *v1.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(e)
}

// append keeps no result a second time: the event of a step's end names the step.
func (j *Journal) append(e *v1.Event) error {
	e.Seq = j.seq + 1
	kept := e
	if e.GetFinished() != nil {
		kept = &v1.Event{Seq: e.Seq, SessionId: e.SessionId, StepId: e.StepId, Time: e.Time, Event: &v1.Event_Finished{}}
	}
	b, err := proto.Marshal(kept)
	if err != nil {
		return err
	}
	if err := j.query("INSERT INTO event VALUES (?, ?)", []any{e.Seq, b}, nil); err != nil {
		return err
	}
	j.seq++
	return nil
}

// LastSeq is the number of the last event.
func (j *Journal) LastSeq() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seq
}

// Events is up to limit events from a number on.
func (j *Journal) Events(from uint64, limit int) (events []*v1.Event, err error) {
	err = j.locked("SELECT body FROM event WHERE seq >= ? ORDER BY seq LIMIT ?", []any{from, uint64(limit)}, func(s *sqlite3.Stmt) error {
		e := new(v1.Event)
		events = append(events, e)
		return proto.Unmarshal(s.ColumnRawBlob(0), e)
	})
	for _, e := range events {
		if f, ok := e.Event.(*v1.Event_Finished); ok && err == nil {
			_, _, f.Finished, err = j.Step(e.StepId)
		}
	}
	return events, err
}
