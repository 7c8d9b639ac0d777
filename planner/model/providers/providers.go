// Package providers finds the model that a name means, with the keys and base
// URLs of the environment.
package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"harness/planner/model"
	"harness/planner/model/anthropic"
	"harness/planner/model/catalogue"
	"harness/planner/model/openai"
	"harness/planner/model/recorded"
)

const noKey = `no model: give one of
  ANTHROPIC_API_KEY=…   and  -m anthropic/MODEL
  OPENAI_API_KEY=…      and  -m openai/MODEL        (or openai-chat/MODEL)
  OPENROUTER_API_KEY=…  and  -m openrouter/MODEL
or a local server, without a key:
  -m ollama/MODEL                                   (OLLAMA_HOST, default http://127.0.0.1:11434)
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1  and  -m openai-chat/MODEL   (llama.cpp, vLLM, LM Studio)
HARNESS_MODEL names the default`

// Models that are taken where only a key is given.
const (
	defaultAnthropic = "claude-sonnet-4-5"
	defaultOpenAI    = "gpt-5.1"
	defaultRouted    = "anthropic/claude-sonnet-4.5"
)

// Resolve is the model of a name, or of the keys that are there for "".
// A model that holds something open is an io.Closer too.
func Resolve(name string, getenv func(string) string) (model.Model, error) {
	return ResolveVia(nil, name, getenv)
}

// ResolveVia is Resolve with an HTTP client, nil for the default.
func ResolveVia(via *http.Client, name string, getenv func(string) string) (model.Model, error) {
	if name == "" {
		name = getenv("HARNESS_MODEL")
	}
	switch {
	case name != "":
	case getenv("ANTHROPIC_API_KEY") != "":
		name = "anthropic/" + defaultAnthropic
	case getenv("OPENAI_API_KEY") != "":
		name = "openai/" + defaultOpenAI
	case getenv("OPENROUTER_API_KEY") != "":
		name = "openrouter/" + defaultRouted
	default:
		return nil, &model.Error{Kind: model.Auth, Message: noKey}
	}
	if file, ok := strings.CutPrefix(name, "recorded:"); ok {
		return play(via, file)
	}
	provider, id, ok := strings.Cut(name, "/")
	if !ok || id == "" {
		return nil, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("%q is no provider/model, as anthropic/%s", name, defaultAnthropic)}
	}
	key := func(variable string, needed bool) (string, error) {
		k := getenv(variable)
		if k == "" && needed {
			return "", &model.Error{Kind: model.Auth, Message: fmt.Sprintf("%s is not set, and %s needs it\n\n%s", variable, name, noKey)}
		}
		return k, nil
	}
	c := openai.Config{Model: id, Provider: provider, HTTPClient: via}
	var err error
	switch provider {
	case "anthropic":
		k, err := key("ANTHROPIC_API_KEY", getenv("ANTHROPIC_BASE_URL") == "")
		if err != nil {
			return nil, err
		}
		return anthropic.New(anthropic.Config{Model: id, APIKey: k, BaseURL: getenv("ANTHROPIC_BASE_URL"), HTTPClient: via, Info: catalogue.Lookup(name)}), nil
	case "openai", "openai-chat":
		c.BaseURL = getenv("OPENAI_BASE_URL")
		if c.APIKey, err = key("OPENAI_API_KEY", c.BaseURL == ""); err != nil {
			return nil, err
		}
		c.Info = catalogue.Lookup(name)
		if provider == "openai" {
			return openai.NewResponses(c), nil
		}
		return openai.NewChat(c), nil
	case "openrouter":
		c.BaseURL = "https://openrouter.ai/api/v1"
		if u := getenv("OPENROUTER_BASE_URL"); u != "" {
			c.BaseURL = u
		}
		c.APIKey, err = key("OPENROUTER_API_KEY", true)
		c.Info = catalogue.Lookup(name)
	case "ollama":
		host := getenv("OLLAMA_HOST")
		if host == "" {
			host = "127.0.0.1:11434"
		}
		if !strings.Contains(host, "://") {
			host = "http://" + host
		}
		c.BaseURL, c.APIKey = strings.TrimSuffix(host, "/")+"/v1", "ollama"
	default:
		return nil, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no provider %q: anthropic, openai, openai-chat, openrouter, ollama", provider)}
	}
	if err != nil {
		return nil, err
	}
	return openai.NewChat(c), nil
}

// played is a model that a recording answers for.
type played struct {
	model.Model
	server *recorded.Server
	file   string
}

func (p *played) Name() string { return "recorded:" + p.file }
func (p *played) Close() error { return p.server.Close() }

// Notes is what differs in the requests from the recorded ones.
func (p *played) Notes() []string { return p.server.Notes() }

// play serves a recording, FILE or FILE?wire=anthropic|responses|chat.
func play(via *http.Client, file string) (model.Model, error) {
	file, query, _ := strings.Cut(file, "?")
	f, err := os.Open(file)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "the recording: " + err.Error()}
	}
	defer f.Close()
	replies, err := recorded.Load(f)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: file + ": " + err.Error()}
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("%q: %v", query, err)}
	}
	return playVia(via, replies, file, q.Get("wire"))
}

// Play serves replies in one of the wires: that of the recorded exchanges, or Anthropic's.
func Play(replies []recorded.Reply, name, wire string) (model.Model, error) {
	return playVia(nil, replies, name, wire)
}

func playVia(via *http.Client, replies []recorded.Reply, name, wire string) (model.Model, error) {
	id := "recorded"
	if len(replies) > 0 && replies[0].Exchange != nil {
		var request struct{ Model string } // thoughts go back to the model that had them
		if err := json.Unmarshal(replies[0].Exchange.Request, &request); err != nil {
			return nil, &model.Error{Kind: model.Invalid, Message: name + ": the first request: " + err.Error()}
		}
		id, wire = request.Model, replies[0].Exchange.Wire
	}
	s, err := recorded.Serve(replies)
	if err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "the server of the recording: " + err.Error()}
	}
	m, err := speak(via, s, id, wire)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &played{m, s, name}, nil
}

// speak is a client of a recording's server.
func speak(via *http.Client, s *recorded.Server, id, wire string) (model.Model, error) {
	c := openai.Config{Model: id, APIKey: "none", BaseURL: s.URL() + "/v1", HTTPClient: via}
	switch wire {
	case "", "anthropic":
		return anthropic.New(anthropic.Config{Model: id, APIKey: "none", BaseURL: s.URL(), HTTPClient: via}), nil
	case "responses":
		return openai.NewResponses(c), nil
	case "chat":
		return openai.NewChat(c), nil
	}
	return nil, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no wire %q: anthropic, responses, chat", wire)}
}
