// Package anthropic speaks the Messages API through the provider's SDK.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"harness/planner/model"
)

// Config names a model and the way to it.
type Config struct {
	Model, APIKey, BaseURL string
	HTTPClient             *http.Client
	Info                   model.Info
}

type client struct {
	cfg Config
	sdk sdk.MessageService
}

// New is a model of Anthropic's, or of a server that speaks as they do. It
// takes nothing from the environment by itself.
func New(c Config) model.Model {
	opts := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMaxRetries(0), option.WithHTTPClient(model.Client(c.HTTPClient))}
	if c.APIKey != "" {
		opts = append(opts, option.WithAPIKey(c.APIKey))
	}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(c.BaseURL))
	}
	return &client{c, sdk.NewMessageService(opts...)}
}

func (c *client) Name() string     { return "anthropic/" + c.cfg.Model }
func (c *client) Info() model.Info { return c.cfg.Info }

func (c *client) Complete(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	p, err := c.params(req)
	if err != nil {
		return nil, err
	}
	ctx, alive, stop := model.Idle(ctx)
	defer stop()
	stream := c.sdk.NewStreaming(ctx, p, option.WithMiddleware(model.Heard(alive)))
	defer stream.Close()
	var got collected
	for stream.Next() {
		got.add(stream.Current(), emit)
	}
	if err := stream.Err(); err != nil {
		return nil, model.Failure(ctx, err, given(err), c.cfg.APIKey)
	}
	if !got.ended {
		return nil, model.Failure(ctx, nil, model.Unfinished(), "")
	}
	return got.reply(c.cfg.Model, req.Messages), nil
}

// given is err as the provider gave it, nil where it did not come from there.
func given(err error) *model.Error {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return nil
	}
	var header http.Header
	if api.Response != nil {
		header = api.Response.Header
	}
	var body struct {
		Error struct{ Type, Message string }
	}
	text := api.RawJSON()
	if json.Unmarshal([]byte(text), &body) == nil && body.Error.Message != "" {
		text = body.Error.Message
	}
	if api.StatusCode < 400 {
		return model.FromStream(body.Error.Type, text)
	}
	return model.FromHTTP(api.StatusCode, header, text)
}
