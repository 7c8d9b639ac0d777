package recorded

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"harness/planner/model"
)

// Server plays a recording, one reply a request, in order.
type Server struct {
	srv      *http.Server
	url      string
	mu       sync.Mutex
	replies  []Reply
	next     int
	requests [][]byte
	notes    []string
}

var wires = map[string]struct {
	path string
	wire wire
}{
	"anthropic": {"/v1/messages", anthropicWire{}},
	"responses": {"/v1/responses", responsesWire{}},
	"chat":      {"/v1/chat/completions", chatWire{}},
}

// Check says what the provider of a wire would refuse in a request.
func Check(name string, body []byte) error { return wires[name].wire.check(body) }

// Serve starts a server on a free port of 127.0.0.1.
func Serve(replies []Reply) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{replies: replies, url: "http://" + ln.Addr().String()}
	mux := http.NewServeMux()
	for _, w := range wires {
		mux.HandleFunc("POST "+w.path, func(rw http.ResponseWriter, req *http.Request) { s.answer(rw, req, w.wire) })
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
	// broken is an error event of a stream that has begun.
	broken(w *stream)
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
	if r.Exchange != nil {
		s.replay(w, as, n, body, r.Exchange)
		return
	}
	if refuse(w, as, r.Fault) {
		return
	}
	if r.Usage == (model.Usage{}) {
		r.Usage = model.Usage{InputTokens: len(body) / 4, OutputTokens: 1 + (len(r.Text)+size(r.Calls))/4}
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	out := &stream{w: w, flush: w.(http.Flusher), gone: req.Context().Done(), as: as, fault: r.Fault}
	as.reply(out, n, r.damaged())
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
