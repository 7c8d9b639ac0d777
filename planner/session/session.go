// Package session is the planner's append-only log: what was said, decided and
// done, in order, one writer a session, in an embedded SQLite database. An event
// is in it before it is acted upon; nothing in it is ever rewritten.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	v1 "harness/contract/harness/v1"
)

// Event is one line of the log. Types are those of the JSON events, and
// message.user, message.assistant and message.tool, which the model's view is made of.
type Event struct {
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Meta is what a list of sessions shows.
type Meta struct {
	ID, Workspace, Task, Model, Verdict, StopReason string
	Started, Updated                                time.Time
	Turns, Steps                                    int
	Parent                                          string `json:",omitempty"` // of a fork: its log begins with that session's
	ParentSeq                                       int64  `json:",omitempty"` // first ParentSeq events
	CostUSD                                         float64
}

// Surface shows a session to people and asks them.
type Surface interface {
	Event(Event)
	Delta(text, reasoning string)
	Output(stepID, text string)
	// Ask answers an approval; session_id, approval_id and digest come from it.
	Ask(ctx context.Context, a *v1.Approval) (*v1.DecideRequest, error)
	// Question asks the person something; an error means that nobody can answer.
	Question(ctx context.Context, text string) (string, error)
}

const schema = `
CREATE TABLE IF NOT EXISTS session (
	id TEXT PRIMARY KEY, workspace TEXT NOT NULL, updated INTEGER NOT NULL, meta TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS session_updated ON session (workspace, updated);
CREATE TABLE IF NOT EXISTS event (
	session TEXT NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, type TEXT NOT NULL, data BLOB,
	PRIMARY KEY (session, seq)) WITHOUT ROWID;
`

// Store is all sessions of a user.
type Store struct {
	dir string
	mu  sync.Mutex
	db  *sqlite3.Conn
	// stmts are the prepared statements, by their text.
	stmts map[string]*sqlite3.Stmt
}

// Open opens or makes the store in dir. A database that is not one is set
// aside, never removed.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "locks"), 0o700); err != nil {
		return nil, fmt.Errorf("the session store: %w", err)
	}
	path := filepath.Join(dir, "sessions.db")
	db, err := connect(path)
	if errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.CORRUPT) {
		aside := path + ".damaged-" + time.Now().Format("20060102-150405")
		// The write-ahead log belongs to the damaged file, not to the new one.
		for _, part := range []string{"", "-wal", "-shm"} {
			if rerr := os.Rename(path+part, aside+part); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
				return nil, errors.Join(err, rerr)
			}
		}
		fmt.Fprintf(os.Stderr, "harness: the session store was damaged; it is kept as %s, a new one was begun\n", aside)
		db, err = connect(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the session store %s: %w", path, err)
	}
	return &Store{dir: dir, db: db, stmts: map[string]*sqlite3.Stmt{}}, nil
}

func connect(path string) (*sqlite3.Conn, error) {
	db, err := sqlite3.Open("file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
	if err != nil {
		return nil, err
	}
	// What is in the write-ahead log is as durable there; the next one who opens it goes on from it.
	if _, err = db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err == nil {
		err = db.Exec(schema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, os.Chmod(path, 0o600)
}

// Close closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, s.db.Close())...)
}

func (s *Store) exec(sql string, args []any, row func(*sqlite3.Stmt) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stmts[sql]
	if st == nil {
		var err error
		if st, _, err = s.db.Prepare(sql); err != nil {
			return err
		}
		s.stmts[sql] = st
	}
	defer st.Reset()
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case string:
			err = st.BindText(i+1, a)
		case int64:
			err = st.BindInt64(i+1, a)
		case json.RawMessage:
			err = st.BindBlob(i+1, a)
		}
		if err != nil {
			return err
		}
	}
	for st.Step() {
		if row != nil {
			if err := row(st); err != nil {
				return err
			}
		}
	}
	return st.Err()
}

func (s *Store) putMeta(m Meta) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.exec("INSERT INTO session VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET updated = excluded.updated, meta = excluded.meta",
		[]any{m.ID, m.Workspace, m.Updated.UnixNano(), string(data)}, nil)
}

func (s *Store) metas(where string, args ...any) (list []Meta, err error) {
	err = s.exec("SELECT meta FROM session "+where, args, func(st *sqlite3.Stmt) error {
		var m Meta
		defer func() { list = append(list, m) }()
		return json.Unmarshal([]byte(st.ColumnText(0)), &m)
	})
	return list, err
}

// ErrNone says that there is no such session.
var ErrNone = errors.New("no such session")

// List is all sessions, newest first.
func (s *Store) List() ([]Meta, error) { return s.metas("ORDER BY updated DESC") }

// Latest is the newest session of a workspace, of all for "". One that never
// began is none: a run that could not start must not hide the one before it.
func (s *Store) Latest(workspace string) (Meta, error) {
	list, err := s.metas("WHERE (workspace = ? OR ? = '') AND EXISTS (SELECT 1 FROM event WHERE event.session = session.id) ORDER BY updated DESC LIMIT 1", workspace, workspace)
	return first(list, err)
}

// Get is one session.
func (s *Store) Get(id string) (Meta, error) {
	list, err := s.metas("WHERE id = ?", id)
	return first(list, err)
}

func first(list []Meta, err error) (Meta, error) {
	if err == nil && len(list) == 0 {
		err = ErrNone
	}
	if err != nil {
		return Meta{}, err
	}
	return list[0], nil
}

// Read is a session's events, those that a fork shares with its parent first.
func (s *Store) Read(id string) ([]Event, error) {
	m, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	var events []Event
	if m.Parent != "" {
		if events, err = s.Read(m.Parent); err != nil {
			return nil, fmt.Errorf("the session %s, of which %s is a fork: %w", m.Parent, id, err)
		}
		events = events[:min(int64(len(events)), m.ParentSeq)]
	}
	own, err := s.own(id)
	return append(events, own...), err
}

// own is the events that a session does not share with a parent.
func (s *Store) own(id string) (events []Event, err error) {
	err = s.exec("SELECT seq, time, type, data FROM event WHERE session = ? ORDER BY seq", []any{id}, func(st *sqlite3.Stmt) error {
		data, err := s.body(id, st.ColumnRawBlob(3))
		events = append(events, Event{Seq: st.ColumnInt64(0), Time: time.Unix(0, st.ColumnInt64(1)), Type: st.ColumnText(2), Data: data})
		return err
	})
	return events, err
}
