// Package recorded is a model server that plays recordings: a real HTTP server
// on the loopback that speaks the Anthropic Messages, OpenAI Responses and
// OpenAI Chat Completions wire formats, streamed, so that the real clients run
// against it. A recording has one reply a line:
//
//	{"text": "I look first.", "calls": [{"name": "read_file", "args": {"path": "a.go"}}]}
//	{"fault": "429"}
//	{"text": "Done."}
//
// A line with a fault answers one request with it; the next line answers the retry.
package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"harness/planner/model"
)

// Reply is one line of a recording.
type Reply struct {
	Text  string      `json:"text"`
	Calls []Call      `json:"calls"`
	Usage model.Usage `json:"usage"`
	// Fault instead: 429, 500, 529, auth, context, reset, cut, cut_call, bad_json.
	Fault string `json:"fault"`
}

// Call is a tool call of a reply.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Load reads a recording.
func Load(r io.Reader) ([]Reply, error) {
	var replies []Reply
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var reply Reply
		if err := dec.Decode(&reply); err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", n, err)
		}
		replies = append(replies, reply)
	}
	return replies, sc.Err()
}

// Server plays a recording, one reply a request, in order.
type Server struct {
	srv      *http.Server
	url      string
	mu       sync.Mutex
	replies  []Reply
	next     int
	requests [][]byte
}

// Serve starts a server on a free port of 127.0.0.1.
func Serve(replies []Reply) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{replies: replies, url: "http://" + ln.Addr().String()}
	mux := http.NewServeMux()
	for path, w := range map[string]wire{"/v1/messages": anthropicWire{}, "/v1/responses": responsesWire{}, "/v1/chat/completions": chatWire{}} {
		mux.HandleFunc("POST "+path, func(rw http.ResponseWriter, req *http.Request) { s.answer(rw, req, w) })
	}
	s.srv = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go s.srv.Serve(ln)
	return s, nil
}

// URL is where the server listens; the OpenAI wires are below URL+"/v1".
func (s *Server) URL() string { return s.url }

// Requests is the bodies of the requests so far.
func (s *Server) Requests() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte{}, s.requests...)
}

// Close ends the server and its connections.
func (s *Server) Close() error { return s.srv.Close() }

// wire is one provider's format.
type wire interface {
	// check says what the provider would refuse in a request.
	check(body []byte) error
	reply(w *stream, n int, r Reply)
	fail(w http.ResponseWriter, status int, kind, message string)
}

func (s *Server) answer(w http.ResponseWriter, req *http.Request, as wire) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 64<<20))
	if err != nil {
		return
	}
	if err := as.check(body); err != nil {
		as.fail(w, 400, "invalid_request_error", err.Error())
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, body)
	n := s.next
	s.next++
	s.mu.Unlock()
	if n >= len(s.replies) {
		as.fail(w, 400, "invalid_request_error", fmt.Sprintf("the recording has %d replies, this is request %d", len(s.replies), n+1))
		return
	}
	r := s.replies[n]
	switch r.Fault {
	case "":
	case "429":
		w.Header().Set("Retry-After", "0.05")
		as.fail(w, 429, "rate_limit_error", "slow down")
		return
	case "500":
		as.fail(w, 500, "api_error", "internal error")
		return
	case "529":
		as.fail(w, 529, "overloaded_error", "overloaded")
		return
	case "auth":
		as.fail(w, 401, "authentication_error", "invalid x-api-key")
		return
	case "context":
		as.fail(w, 400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum (context_length_exceeded)")
		return
	case "reset":
		if h, ok := w.(http.Hijacker); ok {
			if c, _, err := h.Hijack(); err == nil {
				c.Close()
			}
		}
		return
	case "cut", "cut_call", "bad_json":
	default:
		as.fail(w, 400, "invalid_request_error", "the recording has an unknown fault "+r.Fault)
		return
	}
	if r.Usage == (model.Usage{}) {
		r.Usage = model.Usage{InputTokens: len(body) / 4, OutputTokens: 1 + (len(r.Text)+size(r.Calls))/4}
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	out := &stream{w: w, flush: w.(http.Flusher)}
	switch r.Fault {
	case "cut":
		out.left = 3
	case "cut_call":
		out.cutInArgs = true
	case "bad_json":
		for i := range r.Calls {
			r.Calls[i].Args = append([]byte{}, r.Calls[i].Args[:max(1, len(r.Calls[i].Args)/2)]...)
		}
	}
	as.reply(out, n, r)
	if out.cut {
		panic(http.ErrAbortHandler)
	}
}

func size(calls []Call) (n int) {
	for _, c := range calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

// stream writes server-sent events, each flushed.
type stream struct {
	w         io.Writer
	flush     http.Flusher
	left      int // events until the connection is cut, 0: never
	cutInArgs bool
	cut       bool
}

// event writes one; an empty name is a bare data line.
func (s *stream) event(name string, data any) {
	if s.cut {
		return
	}
	b, err := json.Marshal(data)
	if err != nil {
		panic("recorded: " + err.Error())
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	s.flush.Flush()
	if s.left > 0 {
		if s.left--; s.left == 0 {
			s.cut = true
		}
	}
}

// args streams the pieces of a call's arguments.
func (s *stream) args(args string, emit func(piece string)) {
	for i, p := range pieces(args, 24) {
		emit(p)
		if s.cutInArgs && i == 0 {
			s.cut = true
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

func compact(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	return string(raw)
}
