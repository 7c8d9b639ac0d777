// Package openai speaks the Responses API and the Chat Completions API through
// the provider's SDK; the second one also reaches every compatible server. It
// takes nothing from the environment by itself.
package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"harness/planner/model"
)

// Config names a model and the way to it.
type Config struct {
	Model, APIKey, BaseURL string
	HTTPClient             *http.Client
	Info                   model.Info
	Provider               string // in the model's name; default openai
}

type client struct {
	cfg  Config
	opts []option.RequestOption
}

func newClient(c Config) client {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0), option.WithHTTPClient(model.Client(c.HTTPClient))}
	if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.BaseURL))
	}
	if c.Provider == "" {
		c.Provider = "openai"
	}
	return client{c, opts}
}

func (c *client) Name() string     { return c.cfg.Provider + "/" + c.cfg.Model }
func (c *client) Info() model.Info { return c.cfg.Info }

func parameters(t model.Tool) (p map[string]any, err error) {
	if err := json.Unmarshal(t.Schema, &p); err != nil {
		return nil, &model.Error{Kind: model.Invalid, Message: "the schema of the tool " + t.Name + ": " + err.Error()}
	}
	return p, nil
}

// given is err as the provider gave it, nil where it did not come from there.
func given(err error) *model.Error {
	var api *sdk.Error
	if errors.As(err, &api) {
		var header http.Header
		if api.Response != nil {
			header = api.Response.Header
		}
		text := api.Message
		if text == "" {
			text = api.RawJSON()
		}
		if api.Code != "" {
			text += " (" + api.Code + ")"
		}
		return model.FromHTTP(api.StatusCode, header, text)
	}
	var event *ssestream.StreamError
	if errors.As(err, &event) {
		var body struct {
			Error struct {
				Type, Message string
				Code          any
			}
		}
		if json.Unmarshal(event.Event.Data, &body) != nil || body.Error.Message == "" {
			return model.FromStream("", event.Message)
		}
		code := body.Error.Type
		if body.Error.Code != nil {
			code = fmt.Sprint(body.Error.Code)
		}
		return model.FromStream(code, body.Error.Message)
	}
	return nil
}
