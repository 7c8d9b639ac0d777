package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// obj is a JSON object that keeps the order of its fields.
type obj []field

type field struct {
	name  string
	value any
}

func (o obj) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", f.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// stream writes server-sent events, each flushed, until its fault.
type stream struct {
	w     io.Writer
	flush http.Flusher
	gone  <-chan struct{} // closed when the client is
	as    wire
	fault string
	cut   bool // the connection is to end here
	over  bool // no more events come
}

// event writes one; an empty name is a bare data line.
func (s *stream) event(name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		panic("recorded: " + err.Error())
	}
	s.raw(name, string(b))
}

func (s *stream) raw(name, data string) {
	if s.cut || s.over {
		return
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	s.flush.Flush()
}

// text streams the pieces of the reply's text.
func (s *stream) text(text string, emit func(piece string)) {
	s.pieces("text", text, 16, emit)
}

// args streams the pieces of a call's arguments.
func (s *stream) args(args string, emit func(piece string)) {
	s.pieces("call", args, 24, emit)
}

func (s *stream) pieces(place, text string, n int, emit func(piece string)) {
	for i, p := range pieces(text, n) {
		if emit(p); i == 0 && !s.cut && !s.over {
			s.trip(place)
		}
	}
}

// pieces cuts a text at character boundaries.
func pieces(text string, n int) []string {
	var list []string
	start, count := 0, 0
	for i := range text {
		if count == n {
			list = append(list, text[start:i])
			start, count = i, 0
		}
		count++
	}
	if start < len(text) {
		list = append(list, text[start:])
	}
	return list
}

func arguments(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	return string(raw)
}
