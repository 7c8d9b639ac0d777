package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"harness/planner/model"
)

// turn is one reply of the model, streamed to the surface and put into the log.
// It is nil where the reply was of no use and the model is to be asked again.
func (r *run) turn() (*model.Reply, error) {
	if err := r.emit("turn.started", map[string]any{"turn": r.spent.Turns + 1}); err != nil {
		return nil, err
	}
	for {
		most, reason, text := r.Limits.Reserve(r.spent, r.view.Tokens(), r.Model.Info())
		if reason != "" {
			return nil, limit(reason, text)
		}
		ctx, cancel := context.WithCancelCause(r.ctx)
		stopWatch := r.onInterrupt(func() { cancel(errInterrupted) })
		reply, err := model.Complete(ctx, r.Model, &model.Request{System: r.system, Messages: r.messages(), Tools: r.tools, MaxTokens: most},
			func(d model.Delta) { r.Surface.Delta(d.Text, d.Reasoning) },
			func(e *model.Error, wait time.Duration, attempt int) {
				r.emit("error", map[string]any{"message": e.Error(), "retry_in_s": wait.Seconds(), "attempt": attempt})
			})
		stopWatch()
		cause := context.Cause(ctx)
		cancel(nil)
		switch {
		case err == nil:
			return r.accept(reply)
		case errors.Is(cause, errInterrupted) && r.ctx.Err() == nil:
			if err := r.interrupted(); err != nil {
				return nil, err
			}
		case r.ctx.Err() != nil:
			return nil, context.Cause(r.ctx)
		default:
			if err := r.failed(err); err != nil {
				return nil, err
			}
		}
	}
}

// messages is the conversation as the model can take it.
func (r *run) messages() []model.Message {
	if r.Model.Info().TextOnly {
		return model.Blind(r.view.Messages())
	}
	return r.view.Messages()
}

// failed is what to do about a request that got no reply: nil to ask again, with
// a shorter view or another model, or the end of the run.
func (r *run) failed(err error) error {
	var me *model.Error
	typed := errors.As(err, &me)
	switch {
	case typed && me.Kind == model.Context:
		if f, ok := r.view.Shrink(); ok {
			return r.fold(f)
		}
	case typed && me.Kind == model.Picture:
		if f, ok := r.view.Unseen(); ok {
			return errors.Join(r.emit("warning", map[string]any{"message": "the images are left out: " + me.Message}), r.fold(f))
		}
	case typed && me.Retryable() && r.Fallback != nil && r.Model != r.Fallback:
		text := fmt.Sprintf("%s is out (%v); %s goes on", r.Model.Name(), err, r.Fallback.Name())
		r.Model = r.Fallback
		r.view.Fit(r.Model.Info().ContextWindow)
		return errors.Join(r.emit("warning", map[string]any{"message": text}), r.fit())
	}
	r.emit("turn.failed", map[string]any{"error": err.Error()})
	switch {
	case typed && me.Kind == model.Auth:
		return &stop{"credentials", 41, me.Message}
	case typed && me.Kind == model.Context:
		return &stop{"context_length", 1, "the conversation is too long for " + r.Model.Name() + ", and nothing is left in it to fold: " + me.Message}
	}
	return &stop{"model_error", 1, err.Error()}
}

var errInterrupted = errors.New("interrupted by the user")

// onInterrupt calls f at an interrupt, until the function that it returns is called.
func (r *run) onInterrupt(f func()) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-r.Interrupt:
			f()
		case <-done:
		}
	}()
	return func() { close(done); <-ended }
}

// interrupted asks what to do instead; where nobody can answer, the run ends.
func (r *run) interrupted() error {
	text, err := r.Surface.Question(r.ctx, "Interrupted. What should it do instead? (empty: go on)")
	if err != nil {
		return &stop{"interrupted", 130, "interrupted by the user"}
	}
	if strings.TrimSpace(text) == "" {
		return r.tell("I interrupted you. Go on.")
	}
	return r.say(model.Message{Role: model.User, Text: text})
}
