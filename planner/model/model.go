// Package model says what a model is to the planner: a conversation goes in, a
// streamed reply with tool calls and usage comes out. Each provider is a
// package below this one and hides its SDK.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Model is one model of one provider.
type Model interface {
	// Name is provider/model.
	Name() string
	// Complete sends the conversation and streams the reply: emit is called
	// for each piece as it comes. It does not retry; its errors are *Error.
	Complete(ctx context.Context, req *Request, emit func(Delta)) (*Reply, error)
	// Info is the context size and prices, zero where unknown.
	Info() Info
}

// Info is what the catalogue knows of a model. Prices are USD per million tokens.
type Info struct {
	ContextWindow, MaxOutput   int
	Input, CachedInput, Output float64
	CacheWrite                 float64 // of input that goes into the cache; 0: the price of input
	TextOnly                   bool    // it is known to take no images
}

// Cost of a usage in USD.
func (i Info) Cost(u Usage) float64 {
	write := i.CacheWrite
	if write == 0 {
		write = i.Input
	}
	plain := u.InputTokens - u.CachedInputTokens - u.CacheWriteTokens
	return (float64(plain)*i.Input + float64(u.CachedInputTokens)*i.CachedInput + float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*i.Output) / 1e6
}

type Request struct {
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int
}

type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // carries Results only
)

// Message is one turn. A reply with Calls is followed by one ToolRole message
// with a result for each of them, in order.
type Message struct {
	Role    Role         `json:"role"`
	Text    string       `json:"text,omitempty"`
	Images  []Image      `json:"images,omitempty"` // of the user; before the text
	Calls   []ToolCall   `json:"calls,omitempty"`
	Results []ToolResult `json:"results,omitempty"`
	// Opaque is what a provider needs back unchanged (thinking signatures,
	// reasoning items); only the provider that wrote it reads it.
	Opaque map[string]json.RawMessage `json:"opaque,omitempty"`
	// Harness marks words that are the harness's own, not a person's.
	Harness bool `json:"harness,omitempty"`
}

type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of an object
}

type ToolCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // as the model wrote it: may not be valid JSON
}

type ToolResult struct {
	CallID  string  `json:"call_id"`
	Name    string  `json:"name"`
	Text    string  `json:"text"`
	IsError bool    `json:"is_error,omitempty"`
	Images  []Image `json:"images,omitempty"` // behind the text
}

// Delta is a piece of a reply as it streams; one field is set.
type Delta struct {
	Text, Reasoning string
	CallName        string // a tool call has begun
}

type Usage struct {
	InputTokens       int `json:"input_tokens"` // with the cached ones
	CachedInputTokens int `json:"cached_input_tokens"`
	CacheWriteTokens  int `json:"cache_write_tokens,omitempty"` // of the input, put into the cache
	OutputTokens      int `json:"output_tokens"`                // with reasoning
	ReasoningTokens   int `json:"reasoning_tokens,omitempty"`   // of the output
}

// Stop is why a reply ended.
type Stop string

const (
	EndTurn   Stop = "end_turn"
	ToolUse   Stop = "tool_use"
	MaxTokens Stop = "max_tokens"
	Refusal   Stop = "refusal"
	Filtered  Stop = "content_filter" // the provider's filter ended it
)

type Reply struct {
	Message Message
	Stop    Stop
	Reason  string // for Stop as the provider wrote it, for the log
	Usage   Usage
}

// Kind is what to do about a provider's error.
type Kind string

const (
	Auth      Kind = "auth"       // no or a bad key: stop, exit 41
	Invalid   Kind = "invalid"    // the request was refused: stop
	Context   Kind = "context"    // too long: fold and go on
	Picture   Kind = "image"      // an image was refused: go on without
	RateLimit Kind = "rate_limit" // wait
	Overload  Kind = "overload"   // wait
	Network   Kind = "network"    // reset, cut, stalled: again
)

// Error is a provider's error.
type Error struct {
	Kind       Kind
	Status     int           // HTTP, 0 where there was no answer
	RetryAfter time.Duration // as the provider asked, 0 where it did not
	Message    string
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d)", e.Kind, e.Message, e.Status)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Message)
}

// Retryable says whether the same request may succeed later.
func (e *Error) Retryable() bool {
	return e.Kind == RateLimit || e.Kind == Overload || e.Kind == Network
}
