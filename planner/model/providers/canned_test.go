package providers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"harness/planner/model"
	"harness/planner/model/anthropic"
	"harness/planner/model/openai"
	"harness/planner/model/recorded"
)

const secret = "sk-this-is-the-key"

// answers is what a provider answers, without a network.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

func client(wire string, a answers) model.Model { return modelOf(wire, "m", a) }

// named is a model of that name; each body that it sends is seen, and refused.
func named(wire, name string, see func(body []byte)) model.Model {
	return modelOf(wire, name, func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			see(body)
		}
		return response(req, 400, strings.NewReader("{}")), err
	})
}

func modelOf(wire, name string, a answers) model.Model {
	h := &http.Client{Transport: a}
	c := openai.Config{Model: name, APIKey: secret, BaseURL: "http://canned.invalid/v1", HTTPClient: h}
	switch wire {
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: name, APIKey: secret, BaseURL: "http://canned.invalid", HTTPClient: h})
	case "responses":
		return openai.NewResponses(c)
	}
	return openai.NewChat(c)
}

func response(req *http.Request, status int, body io.Reader) *http.Response {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	if status >= 400 {
		h.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(body), Request: req}
}

// stream is a client whose provider streams body, and then ends as end says.
func stream(wire string, body []byte, end error) model.Model {
	return client(wire, func(req *http.Request) (*http.Response, error) {
		return response(req, 200, io.MultiReader(bytes.NewReader(body), ends{end})), nil
	})
}

type ends struct{ err error }

func (e ends) Read([]byte) (int, error) { return 0, e.err }

// capture is the bytes of a good reply in every wire.
func capture(t testing.TB) map[string][]byte {
	replies := []recorded.Reply{{Text: "Two words — and more of thém.", Calls: []recorded.Call{
		{Name: "read_file", Args: []byte(`{"path":"a/b \"c\".go","n":[1,{"x":null}]}`)}, {Name: "list_files"}},
		Usage: model.Usage{InputTokens: 9, CachedInputTokens: 4, OutputTokens: 5}}}
	bodies := map[string][]byte{}
	for wire, request := range map[string]struct{ path, body string }{
		"anthropic": {"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		"responses": {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"hi"}]}`},
		"chat":      {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
	} {
		s, err := recorded.Serve(replies)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		res, err := http.Post(s.URL()+request.path, "application/json", strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		bodies[wire], err = io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s %v", wire, res.StatusCode, bodies[wire], err)
		}
	}
	return bodies
}

// Wherever a stream is cut, the reply is whole or an error that is tried again.
func TestCutAtEveryByte(t *testing.T) {
	for wire, body := range capture(t) {
		t.Run(wire, func(t *testing.T) {
			whole := 0
			for n := range len(body) + 1 {
				end := []error{io.EOF, io.ErrUnexpectedEOF}[n%2]
				r, err := stream(wire, body[:n], end).Complete(t.Context(), ask(hello), func(model.Delta) {})
				var e *model.Error
				switch {
				case err == nil:
					whole++
					if r.Message.Text != "Two words — and more of thém." || len(r.Message.Calls) != 2 || string(r.Message.Calls[0].Args) != `{"path":"a/b \"c\".go","n":[1,{"x":null}]}` {
						t.Fatalf("cut at %d of %d: %+v", n, len(body), r)
					}
				case !errors.As(err, &e) || e.Kind != model.Network:
					t.Fatalf("cut at %d of %d: %v", n, len(body), err)
				}
			}
			r, err := stream(wire, body, io.EOF).Complete(t.Context(), ask(hello), func(model.Delta) {})
			if err != nil || whole > len(body)/4 {
				t.Errorf("the whole stream: %+v, %v; %d cut ones are taken for whole", r, err, whole)
			}
		})
	}
}

// Whatever a server streams, it ends in a reply that can be sent back or in a
// typed error.
func FuzzStream(f *testing.F) {
	for _, body := range capture(f) {
		f.Add(body)
	}
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":{}}}]},\"finish_reason\":\"x\"}]}\n\n"))
	f.Add([]byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, wire := range wires {
			r, err := stream(wire, body, io.EOF).Complete(t.Context(), ask(hello), func(model.Delta) {})
			var e *model.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s: %v", wire, err)
			}
			if err != nil {
				continue
			}
			for _, m := range model.Tidy([]model.Message{hello, r.Message}) {
				for _, c := range m.Calls {
					if c.ID == "" || c.Name != model.Plain(c.Name) {
						t.Errorf("%s: %+v", wire, c)
					}
				}
			}
		}
	})
}

// A line that is silent for the idle limit ends; one with pings goes on.
func TestSilence(t *testing.T) {
	for wire, body := range capture(t) {
		t.Run(wire, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				m := client(wire, func(req *http.Request) (*http.Response, error) {
					r, w := io.Pipe()
					go func() {
						w.Write(body[:bytes.LastIndex(body[:len(body)/2], []byte("\n\n"))+2])
						for range 4 {
							time.Sleep(4 * time.Minute)
							w.Write([]byte(": still here\n\n"))
						}
						<-req.Context().Done()
						w.CloseWithError(req.Context().Err())
					}()
					return response(req, 200, r), nil
				})
				_, err := m.Complete(t.Context(), ask(hello), func(model.Delta) {})
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != model.Network || time.Since(start) != 16*time.Minute+model.IdleTimeout {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// The key is in no error, whatever is in the environment of the SDKs.
func TestNoKeyInErrors(t *testing.T) {
	for _, wire := range wires {
		for name, a := range map[string]answers{
			"refused": func(req *http.Request) (*http.Response, error) {
				return response(req, 401, strings.NewReader(`{"type":"error","error":{"type":"authentication_error","message":"no such key: `+secret+`"}}`)), nil
			},
			"plain text": func(req *http.Request) (*http.Response, error) {
				return response(req, 500, strings.NewReader("you sent "+secret)), nil
			},
			"in the stream": func(req *http.Request) (*http.Response, error) {
				return response(req, 200, strings.NewReader("event: error\ndata: {\"type\":\"error\",\"message\":\"no "+secret+"\",\"error\":{\"type\":\"api_error\",\"message\":\"no "+secret+"\"}}\n\n")), nil
			},
			"unreachable": func(req *http.Request) (*http.Response, error) { return nil, errors.New("dial with " + secret) },
		} {
			_, err := client(wire, a).Complete(t.Context(), ask(hello), func(model.Delta) {})
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: %v", wire, name, err)
			}
		}
	}
}

// Keys and headers that the SDKs would take from the environment go nowhere.
func TestEnvironmentOfTheSDKs(t *testing.T) {
	for _, v := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"} {
		t.Setenv(v, "from-the-environment")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Extra: from-the-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: from-the-environment")
	for _, wire := range wires {
		client(wire, func(req *http.Request) (*http.Response, error) {
			keys := 0
			for name, values := range req.Header {
				for _, v := range values {
					if strings.Contains(v, "from-the-environment") {
						t.Errorf("%s: %s", wire, name)
					}
					if strings.Contains(v, secret) {
						keys++
					}
				}
			}
			if keys != 1 || req.URL.Host != "canned.invalid" {
				t.Errorf("%s: %d keys go to %s", wire, keys, req.URL)
			}
			return nil, errors.New("enough")
		}).Complete(t.Context(), ask(hello), func(model.Delta) {})
	}
}
