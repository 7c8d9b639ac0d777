package recorded

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
)

// replay answers with what was recorded. A request of another form than the
// recorded one is refused, with what differs; other words in it are noted.
func (s *Server) replay(w http.ResponseWriter, as wire, n int, body []byte, x *Exchange) {
	form, words := differences(x.Request, body)
	if len(form) > 0 {
		as.fail(w, 400, "invalid_request_error", fmt.Sprintf("request %d is not the recorded one: %s", n+1, strings.Join(form, "; ")))
		return
	}
	if len(words) > 0 {
		s.mu.Lock()
		s.notes = append(s.notes, fmt.Sprintf("request %d differs from the recorded one: %s", n+1, strings.Join(words[:min(3, len(words))], "; ")))
		s.mu.Unlock()
	}
	if x.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, value := range x.Header {
		if name == "Retry-After" {
			value = "0.01" // nobody waits twice
		}
		w.Header().Set(name, value)
	}
	w.WriteHeader(x.Status)
	io.WriteString(w, x.Body)
	w.(http.Flusher).Flush()
	if x.Cut {
		panic(http.ErrAbortHandler)
	}
}

// Notes is what differed so far from the recorded requests; each is given once.
func (s *Server) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes
	s.notes = nil
	return notes
}

// differences of two requests: of form, which are other messages, and of words.
func differences(was, now []byte) (form, words []string) {
	var a, b any
	if err := json.Unmarshal(was, &a); err != nil {
		return []string{"the recorded request is damaged: " + err.Error()}, nil
	}
	if err := json.Unmarshal(now, &b); err != nil {
		return []string{err.Error()}, nil
	}
	compare("", a, b, func(path string, formal bool, a, b any) {
		text := fmt.Sprintf("%s was %s, is %s", path, around(a, b), around(b, a))
		if formal {
			form = append(form, text)
		} else {
			words = append(words, text)
		}
	})
	return form, words
}

func compare(path string, a, b any, differ func(path string, formal bool, a, b any)) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, k := range keys(x, y) {
				compare(path+"."+k, x[k], y[k], differ)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range min(len(x), len(y)) {
				compare(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], differ)
			}
			if len(x) != len(y) {
				differ(path, path == ".messages" || path == ".input", fmt.Sprintf("%d entries", len(x)), fmt.Sprintf("%d entries", len(y)))
			}
			return
		}
	}
	if a != b && path != ".model" {
		inMessages := strings.HasPrefix(path, ".messages[") || strings.HasPrefix(path, ".input[")
		formal := inMessages && (strings.HasSuffix(path, ".role") || strings.HasSuffix(path, ".type") || strings.HasSuffix(path, ".name"))
		differ(strings.TrimPrefix(path, "."), formal, a, b)
	}
}

func keys(a, b map[string]any) (list []string) {
	for k := range a {
		list = append(list, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			list = append(list, k)
		}
	}
	sort.Strings(list)
	return list
}

// around is a value, or the part of a text at which it stops being the other one.
func around(v, other any) string {
	s, ok := v.(string)
	o, _ := other.(string)
	if !ok {
		b, _ := json.Marshal(v)
		return fmt.Sprintf("%.80s", b)
	}
	at := 0
	for at < min(len(s), len(o)) && s[at] == o[at] {
		at++
	}
	from := max(0, at-20)
	part := strings.ToValidUTF8(s[from:min(len(s), at+40)], "")
	if from > 0 {
		part = "…" + part
	}
	return fmt.Sprintf("%q", part)
}
