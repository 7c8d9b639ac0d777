package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Keyboard is where a person types: whole messages while nothing runs, with
// editing and history; lines that steer or answer while something does.
type Keyboard struct {
	in    *os.File
	keys  chan []byte // closed when the terminal is
	rest  []byte      // typed and not yet read
	last  byte
	lines *term.Terminal
}

// NewKeyboard reads from a terminal and shows what is typed on out.
func NewKeyboard(in *os.File, out io.Writer) *Keyboard {
	k := &Keyboard{in: in, keys: make(chan []byte)}
	k.lines = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, "> ")
	go func() {
		defer close(k.keys)
		for {
			buf := make([]byte, 4096)
			n, err := in.Read(buf)
			if n > 0 {
				k.keys <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// Read gives the keys to the line editor.
func (k *Keyboard) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		b, ok := <-k.keys
		if !ok {
			return 0, io.EOF
		}
		k.rest = b
	}
	n := copy(p, k.rest[:1]) // one at a time, to know which one ended a line
	k.last, k.rest = k.rest[0], k.rest[1:]
	return n, nil
}

const (
	ctrlC      = 3
	leaveTwice = 2 * time.Second
)

// Message waits for the next message. Ctrl-C drops what is typed; twice in a
// row, or Ctrl-D, is io.EOF.
func (k *Keyboard) Message() (string, error) {
	was, err := term.MakeRaw(int(k.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(k.in.Fd()), was)
	if w, h, err := term.GetSize(int(k.in.Fd())); err == nil && w > 0 {
		k.lines.SetSize(w, h)
	}
	var dropped time.Time
	for {
		text, err := k.lines.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		if err == nil {
			return text, nil
		}
		if !errors.Is(err, io.EOF) || k.last != ctrlC || time.Since(dropped) < leaveTwice {
			return "", err
		}
		dropped = time.Now()
		io.WriteString(k.lines, "(Ctrl-C again, or Ctrl-D, leaves)\n")
	}
}

// Lines gives each line that is typed to take, until ctx ends.
func (k *Keyboard) Lines(ctx context.Context, take func(string)) {
	for {
		for {
			line, rest, whole := bytes.Cut(k.rest, []byte("\n"))
			if !whole {
				break
			}
			k.rest = rest
			take(string(bytes.TrimRight(line, "\r")))
		}
		select {
		case b, ok := <-k.keys:
			if !ok {
				return
			}
			k.rest = append(k.rest, b...)
		case <-ctx.Done():
			return
		}
	}
}
