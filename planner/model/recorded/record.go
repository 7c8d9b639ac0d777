package recorded

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Exchange is one request of a client and what the provider answered, as it was
// on the wire. Of the headers only those stay that a client acts upon; keys are
// in none of them.
type Exchange struct {
	Wire    string            `json:"wire"`
	Request json.RawMessage   `json:"request"`
	Status  int               `json:"status"` // 0: there was no answer
	Header  map[string]string `json:"header,omitempty"`
	Body    string            `json:"body"`
	Cut     bool              `json:"cut,omitempty"` // the connection broke behind Body
}

// Recorder is a transport that writes each exchange as a line of a recording.
type Recorder struct {
	To      io.Writer
	Secrets []string // that are taken out wherever they are
	Via     http.RoundTripper
	mu      sync.Mutex
	err     error
}

// RoundTrip passes a request on; its line is written when the answer was read.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	x := Exchange{}
	for name, w := range wires {
		if strings.HasSuffix(req.URL.Path, strings.TrimPrefix(w.path, "/v1")) {
			x.Wire = name
		}
	}
	if x.Wire == "" || req.Body == nil {
		return r.Via.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	x.Request = body
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	res, err := r.Via.RoundTrip(again)
	if err != nil {
		x.Cut = true
		r.write(&x)
		return nil, err
	}
	x.Status, x.Header = res.StatusCode, map[string]string{}
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if v := res.Header.Get(name); v != "" {
			x.Header[name] = v
		}
	}
	res.Body = &copied{ReadCloser: res.Body, r: r, x: &x}
	return res, nil
}

func (r *Recorder) write(x *Exchange) {
	line, err := json.Marshal(struct {
		Exchange *Exchange `json:"exchange"`
	}{x})
	for _, s := range r.Secrets {
		if len(s) >= 8 {
			line = bytes.ReplaceAll(line, []byte(s), []byte("[key]"))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		_, err = r.To.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

// Err is the first error of writing.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// copied keeps what is read of an answer.
type copied struct {
	io.ReadCloser
	r    *Recorder
	x    *Exchange
	text []byte
	once sync.Once
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.text = append(c.text, p[:n]...)
	if err != nil {
		c.end(err != io.EOF)
	}
	return n, err
}

func (c *copied) Close() error {
	c.end(false) // a client may stop reading at the end event
	return c.ReadCloser.Close()
}

func (c *copied) end(cut bool) {
	c.once.Do(func() {
		c.x.Body, c.x.Cut = string(c.text), cut
		c.r.write(c.x)
	})
}

// Secrets are the values of an environment that are keys by their names.
func Secrets(environ []string) (list []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD"}, func(s string) bool { return strings.Contains(name, s) }) {
			list = append(list, value)
		}
	}
	return list
}
