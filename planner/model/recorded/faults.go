package recorded

import (
	"net/http"
	"slices"
)

// refusal is an answer in the place of a reply.
type refusal struct {
	status        int
	kind, message string
}

var refusals = map[string]refusal{
	"429":     {429, "rate_limit_error", "slow down"},
	"500":     {500, "api_error", "internal error"},
	"529":     {529, "overloaded_error", "overloaded"},
	"auth":    {401, "authentication_error", "invalid x-api-key"},
	"context": {400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum (context_length_exceeded)"},
	"image":   {400, "invalid_request_error", "messages.0.content.0.image.source.base64: Could not process image"},
	"refused": {400, "invalid_request_error", "the request is refused"},
}

func known(fault string) bool {
	_, ok := refusals[fault]
	return ok || slices.Contains([]string{"", "reset", "cut", "cut_call", "overload", "stall", "max_tokens", "bad_json", "refusal", "filter"}, fault)
}

// refuse answers with the fault where it is one that is no reply.
func refuse(w http.ResponseWriter, as wire, fault string) bool {
	if fault == "reset" {
		panic(http.ErrAbortHandler) // nothing is written yet: the connection just ends
	}
	f, ok := refusals[fault]
	switch {
	case ok:
	case !known(fault):
		f = refusal{400, "invalid_request_error", "the recording has an unknown fault " + fault}
	default:
		return false
	}
	if f.status == 429 {
		w.Header().Set("Retry-After", "0.05")
	}
	as.fail(w, f.status, f.kind, f.message)
	return true
}

// damaged is the reply as its fault leaves it: with the place that the fault
// needs, and the arguments cut.
func (r Reply) damaged() Reply {
	switch r.Fault {
	case "cut", "overload", "stall":
		if r.Text == "" {
			r.Text = "The beginning of a reply that is not to have an end."
		}
	case "cut_call":
		if len(r.Calls) == 0 {
			r.Calls = []Call{{Name: "read_file", Args: []byte(`{"path":"a/path/that/is/cut/in/its/middle"}`)}}
		}
	}
	r.Calls = slices.Clone(r.Calls)
	for i := range r.Calls {
		if r.Fault == "bad_json" || r.Fault == "max_tokens" && i == len(r.Calls)-1 {
			args := r.Calls[i].Args
			r.Calls[i].Args = args[:max(min(1, len(args)), len(args)/2)]
		}
	}
	return r
}

// trip does the fault where the stream is at its place: the text or a call.
func (s *stream) trip(place string) {
	switch s.fault {
	case "cut_call":
		s.cut = place == "call"
	case "cut":
		s.cut = place == "text"
	case "stall":
		if place == "text" {
			<-s.gone
			s.cut = true
		}
	case "overload":
		if place == "text" {
			s.as.broken(s)
			s.over = true
		}
	}
}
