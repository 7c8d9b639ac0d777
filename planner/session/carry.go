package session

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Texts is a session as texts for a bundle: what a list shows of it, and its
// events, with those that it shares with a parent.
func (s *Store) Texts(id string) (map[string][]byte, error) {
	m, err := s.Get(id)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	events, err := s.Read(id)
	if err != nil {
		return nil, err
	}
	m.Parent, m.ParentSeq = "", 0
	meta, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
	}
	return map[string][]byte{"session.json": meta, "events.jsonl": b.Bytes()}, nil
}

// Accept checks texts that Texts made and says whose they are: no event may be
// missing, and the session may not be here yet.
func (s *Store) Accept(texts map[string][]byte) (m Meta, events []Event, err error) {
	if err := json.Unmarshal(texts["session.json"], &m); err != nil || m.ID == "" {
		return m, nil, fmt.Errorf("the bundle has no session: %v", err)
	}
	if _, err := s.Get(m.ID); err == nil {
		return m, nil, fmt.Errorf("the session %s is here already", m.ID)
	}
	for line := range bytes.Lines(texts["events.jsonl"]) {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return m, nil, fmt.Errorf("event %d of the bundle is damaged: %w", len(events)+1, err)
		}
		if e.Seq != int64(len(events))+1 {
			return m, nil, fmt.Errorf("event %d of the bundle is missing", len(events)+1)
		}
		events = append(events, e)
	}
	return m, events, nil
}

// Put adds a session with its events, all or none.
func (s *Store) Put(m Meta, events []Event) (err error) {
	if err := s.exec("BEGIN IMMEDIATE", nil, nil); err != nil {
		return err
	}
	defer func() {
		end := "COMMIT"
		if err != nil {
			end = "ROLLBACK"
		}
		if e := s.exec(end, nil, nil); err == nil {
			err = e
		}
	}()
	for _, e := range events {
		row, err := s.put(m.ID, e.Data)
		if err != nil {
			return err
		}
		if err := s.exec("INSERT INTO event VALUES (?, ?, ?, ?, ?)", []any{m.ID, e.Seq, e.Time.UnixNano(), e.Type, row}, nil); err != nil {
			return err
		}
	}
	return s.putMeta(m)
}
