// Package openai speaks the Responses API and the Chat Completions API through
// the provider's SDK; the second one also reaches every compatible server.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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
	cfg Config
	sdk sdk.Client
}

func newClient(c Config) client {
	opts := []option.RequestOption{option.WithAPIKey(c.APIKey), option.WithMaxRetries(0)}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.BaseURL))
	}
	if c.HTTPClient != nil {
		opts = append(opts, option.WithHTTPClient(c.HTTPClient))
	}
	if c.Provider == "" {
		c.Provider = "openai"
	}
	return client{c, sdk.NewClient(opts...)}
}

func (c *client) Name() string     { return c.cfg.Provider + "/" + c.cfg.Model }
func (c *client) Info() model.Info { return c.cfg.Info }

func parameters(raw json.RawMessage) map[string]any {
	var p map[string]any
	if err := json.Unmarshal(raw, &p); err != nil {
		panic("openai: a tool's schema: " + err.Error())
	}
	return p
}

func convert(ctx context.Context, err error) error {
	var me *model.Error
	if errors.As(context.Cause(ctx), &me) {
		return me
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
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
	return &model.Error{Kind: model.Network, Message: err.Error()}
}
