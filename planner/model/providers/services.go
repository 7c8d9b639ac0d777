package providers

import (
	"fmt"
	"net/http"
	"strings"

	"harness/planner/model"
	"harness/planner/model/anthropic"
	"harness/planner/model/catalogue"
	"harness/planner/model/openai"
)

// service is a way to models: its wire, where it is, and what its key is called.
type service struct {
	name, wire  string
	base        string // $X is the environment's
	baseVar     string // overrides base; with it a key is not needed but where always is set
	keyVar, key string // key is one that is sent where none is set
	always      bool
}

// services are all that is known. The OpenAI-compatible forms of Gemini, Azure
// and Bedrock are used, documented at ai.google.dev/gemini-api/docs/openai,
// learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle and
// docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html.
// google.golang.org/genai links os/exec, which the planner may not have, and
// gRPC, and costs each start 3.5 ms and 15 MB of program.
var services = []service{
	{name: "anthropic", wire: "anthropic", baseVar: "ANTHROPIC_BASE_URL", keyVar: "ANTHROPIC_API_KEY"},
	{name: "openai", wire: "responses", baseVar: "OPENAI_BASE_URL", keyVar: "OPENAI_API_KEY"},
	{name: "openai-chat", wire: "chat", baseVar: "OPENAI_BASE_URL", keyVar: "OPENAI_API_KEY"},
	{name: "gemini", wire: "chat", base: "https://generativelanguage.googleapis.com/v1beta/openai", baseVar: "GEMINI_BASE_URL", keyVar: "GEMINI_API_KEY"},
	{name: "openrouter", wire: "chat", base: "https://openrouter.ai/api/v1", baseVar: "OPENROUTER_BASE_URL", keyVar: "OPENROUTER_API_KEY", always: true},
	{name: "azure", wire: "responses", base: "$AZURE_OPENAI_BASE_URL", keyVar: "AZURE_OPENAI_API_KEY", always: true},
	{name: "bedrock", wire: "chat", base: "https://bedrock-runtime.$AWS_REGION.amazonaws.com/openai/v1", keyVar: "AWS_BEARER_TOKEN_BEDROCK", always: true},
	{name: "ollama", wire: "chat", base: "http://127.0.0.1:11434/v1", key: "ollama"},
}

func find(via *http.Client, name, provider, id string, getenv func(string) string) (model.Model, error) {
	var names []string
	for _, s := range services {
		if s.name == provider {
			return s.model(via, name, id, getenv)
		}
		names = append(names, s.name)
	}
	return nil, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no provider %q: %s", provider, strings.Join(names, ", "))}
}

func (s *service) model(via *http.Client, name, id string, getenv func(string) string) (model.Model, error) {
	lacks := func(variable string) error {
		return &model.Error{Kind: model.Auth, Message: fmt.Sprintf("%s is not set, and %s needs it\n\n%s", variable, name, noKey)}
	}
	base, missing := s.base, ""
	for _, variable := range []string{"AZURE_OPENAI_BASE_URL", "AWS_REGION"} {
		if strings.Contains(base, "$"+variable) && getenv(variable) == "" {
			missing = variable
		}
		base = strings.ReplaceAll(base, "$"+variable, getenv(variable))
	}
	if missing != "" {
		return nil, lacks(missing)
	}
	given := ""
	if s.baseVar != "" {
		given = getenv(s.baseVar)
	}
	if s.name == "ollama" {
		given = ollama(getenv("OLLAMA_HOST"))
	}
	if given != "" {
		base = given
	}
	key := s.key
	if s.keyVar != "" {
		key = getenv(s.keyVar)
	}
	if key == "" && (given == "" || s.always) {
		return nil, lacks(s.keyVar)
	}
	info := catalogue.Lookup(name)
	if s.wire == "anthropic" {
		return anthropic.New(anthropic.Config{Model: id, APIKey: key, BaseURL: base, HTTPClient: via, Info: info}), nil
	}
	c := openai.Config{Model: id, Provider: s.name, APIKey: key, BaseURL: base, HTTPClient: via, Info: info}
	if s.wire == "responses" {
		return openai.NewResponses(c), nil
	}
	return openai.NewChat(c), nil
}

// ollama is the base URL of its host variable, which may lack the scheme.
func ollama(host string) string {
	if host == "" {
		return ""
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return strings.TrimSuffix(host, "/") + "/v1"
}
