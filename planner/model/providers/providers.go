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
	"harness/planner/model/openai"
	"harness/planner/model/recorded"
)

const noKey = `no model: give one of
  ANTHROPIC_API_KEY=…   and  -m anthropic/MODEL
  OPENAI_API_KEY=…      and  -m openai/MODEL        (or openai-chat/MODEL)
  GEMINI_API_KEY=…      and  -m gemini/MODEL
  OPENROUTER_API_KEY=…  and  -m openrouter/MODEL
  AZURE_OPENAI_API_KEY=… AZURE_OPENAI_BASE_URL=https://NAME.openai.azure.com/openai/v1  and  -m azure/DEPLOYMENT
  AWS_BEARER_TOKEN_BEDROCK=… AWS_REGION=…  and  -m bedrock/MODEL
or a local server, without a key:
  -m ollama/MODEL                                   (OLLAMA_HOST, default http://127.0.0.1:11434)
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1  and  -m openai-chat/MODEL   (llama.cpp, vLLM, LM Studio)
HARNESS_MODEL names the default`

// Models that are taken where only a key is given.
const (
	defaultAnthropic = "claude-sonnet-4-5"
	defaultOpenAI    = "gpt-5.1"
	defaultGemini    = "gemini-2.5-pro"
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
	case getenv("GEMINI_API_KEY") != "":
		name = "gemini/" + defaultGemini
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
	return find(via, name, provider, id, getenv)
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
