package session

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Session is one session, open for writing.
type Session struct {
	store *Store
	lock  *os.File
	mu    sync.Mutex
	meta  Meta
	log   []Event
}

// Create begins a session. An empty ID is given one.
func (s *Store) Create(m Meta) (*Session, error) {
	if m.ID == "" {
		m.ID = time.Now().UTC().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:6])
	}
	m.Started = time.Now()
	m.Updated = m.Started
	x := &Session{store: s, meta: m}
	var err error
	if x.lock, err = lock(s.dir, m.ID); err != nil {
		return nil, err
	}
	if err := s.putMeta(m); err != nil {
		x.lock.Close()
		return nil, err
	}
	return x, nil
}

// Fork begins a session whose log starts with another's first seq events, which
// both share: it costs the same whatever their size.
func (s *Store) Fork(id string, seq int64, m Meta) (*Session, error) {
	events, err := s.Read(id)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	m.Parent, m.ParentSeq = id, min(seq, int64(len(events)))
	x, err := s.Create(m)
	if err == nil {
		x.log = events[:m.ParentSeq:m.ParentSeq]
	}
	return x, err
}

// Resume opens a session to go on with it; one process at a time may.
func (s *Store) Resume(id string) (*Session, error) {
	m, err := s.Get(id)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	x := &Session{store: s, meta: m}
	if x.lock, err = lock(s.dir, id); err != nil {
		return nil, err
	}
	if x.log, err = s.Read(id); err != nil {
		x.lock.Close()
		return nil, err
	}
	return x, nil
}

// ID names the session.
func (x *Session) ID() string { return x.meta.ID }

// Meta is the session as a list shows it.
func (x *Session) Meta() Meta {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.meta
}

// Update changes what a list of sessions shows.
func (x *Session) Update(change func(*Meta)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(&x.meta)
	x.meta.Updated = time.Now()
	return x.store.putMeta(x.meta)
}

// Events is the log so far.
func (x *Session) Events() []Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log[:len(x.log):len(x.log)]
}

// Append writes an event; when it returns, the event survives a kill.
func (x *Session) Append(typ string, data any) (Event, error) {
	raw, ok := data.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(data); err != nil {
			return Event{}, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	e := Event{Seq: int64(len(x.log)) + 1, Time: time.Now(), Type: typ, Data: raw}
	row, err := x.store.put(x.meta.ID, e.Data)
	if err == nil {
		err = x.store.exec("INSERT INTO event VALUES (?, ?, ?, ?, ?)", []any{x.meta.ID, e.Seq, e.Time.UnixNano(), e.Type, row}, nil)
	}
	if err != nil {
		return e, fmt.Errorf("the session log: %w", err)
	}
	x.log = append(x.log, e)
	return e, nil
}

// Close lets another process go on with the session.
func (x *Session) Close() error { return x.lock.Close() }
