package session

import (
	"fmt"
	"os"
	"path/filepath"
)

// Remove takes a session out of the store. One that is open, or that a fork
// begins with, stays. before is called when nothing else can open the session
// any more; its error keeps it.
func (s *Store) Remove(id string, before func() error) error {
	x, err := s.Resume(id)
	if err != nil {
		return err
	}
	defer x.Close()
	list, err := s.List()
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Parent == id {
			return fmt.Errorf("its fork %s begins with it", m.ID)
		}
	}
	if err := before(); err != nil {
		return err
	}
	for _, sql := range []string{"DELETE FROM session WHERE id = ?", "DELETE FROM event WHERE session = ?"} {
		if err := s.exec(sql, []any{id}, nil); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(s.bodies(id)); err != nil {
		return err
	}
	return os.Remove(filepath.Join(s.dir, "locks", id))
}
