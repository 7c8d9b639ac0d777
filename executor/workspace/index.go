package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// loadIndex reads the events of all layers; a torn last line never happened.
func (w *Workspace) loadIndex() error {
	name := filepath.Join(w.state, "index")
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	byName := map[string]*layer{}
	for line := range strings.Lines(string(whole)) {
		var event, layerName, step string
		if _, err := fmt.Sscanf(line, "%s %s %q", &event, &layerName, &step); err != nil {
			continue
		}
		w.note(byName, event, layerName, step)
	}
	active, err := os.ReadDir(filepath.Join(w.state, "active"))
	if err != nil {
		return err
	}
	for _, e := range active {
		w.next = max(w.next, number(e.Name()))
	}
	if w.index, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if len(whole) < len(data) {
		return w.index.Truncate(int64(len(whole)))
	}
	return nil
}

func (w *Workspace) note(byName map[string]*layer, event, name, step string) {
	w.next = max(w.next, number(name))
	l := byName[name]
	if l == nil {
		if event == landed || event == staged || event == base {
			w.forgetUndone()
		}
		l = &layer{name: name, step: step}
		w.layers = append(w.layers, l)
		byName[name] = l
	}
	if event == base {
		for _, below := range w.stack() {
			below.state = folded
		}
	}
	l.state = event
}

// forgetUndone ends redo for what is undone: a new step began another branch.
// The layers stay, with their versions.
func (w *Workspace) forgetUndone() {
	for i := len(w.layers) - 1; i >= 0; i-- {
		switch w.layers[i].state {
		case landed, staged, base:
			return
		case undone, dropped:
			w.layers[i].state = stale
		}
	}
}

func number(name string) (n int) {
	fmt.Sscanf(name, "%06d-", &n)
	return n
}

func (w *Workspace) knows(name string) bool {
	return slices.ContainsFunc(w.layers, func(l *layer) bool { return l.name == name })
}

// record appends an event of a layer and makes it durable.
func (w *Workspace) record(event, name, step string) error {
	if _, err := fmt.Fprintf(w.index, "%s %s %q\n", event, name, step); err != nil {
		return err
	}
	if err := w.index.Sync(); err != nil {
		return err
	}
	for _, l := range w.layers {
		if l.name == name {
			l.state = event
			return nil
		}
	}
	w.note(map[string]*layer{}, event, name, step)
	return nil
}
