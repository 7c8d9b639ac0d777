// Package recorded is a model server that plays recordings: a real HTTP server
// on the loopback that speaks the Anthropic Messages, OpenAI Responses and
// OpenAI Chat Completions wire formats, streamed, so that the real clients run
// against it. It refuses what the providers refuse. A recording has one reply a line:
//
//	{"text": "I look first.", "calls": [{"name": "read_file", "args": {"path": "a.go"}}]}
//	{"fault": "429"}
//	{"text": "Done."}
//
// Or a line an exchange as a Recorder wrote it, which is played byte for byte.
// A line with a fault answers one request with it; the next line answers the
// retry. A request after the last line is refused, which no client retries.
package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"harness/planner/model"
)

// Reply is one line of a recording.
type Reply struct {
	Text  string      `json:"text"`
	Calls []Call      `json:"calls"`
	Usage model.Usage `json:"usage"` // by default counted from the sizes
	// Fault is an answer that is no reply: 429, 500, 529, auth, context, image, refused,
	// reset. Or what is wrong with the reply: cut and cut_call end the
	// connection in the text and in a call, overload is an error in the text,
	// stall a silence there, max_tokens ends the reply by the limit in its last
	// call, bad_json cuts the arguments of all, and refusal and filter say that
	// the model and the provider's filter refused.
	Fault string `json:"fault"`
	// Exchange is a line that Recorder wrote; the other fields are empty then.
	Exchange *Exchange `json:"exchange"`
}

// Call is a tool call of a reply.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Load reads a recording.
func Load(r io.Reader) ([]Reply, error) {
	var replies []Reply
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var reply Reply
		if err := dec.Decode(&reply); err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", n, err)
		}
		if !known(reply.Fault) {
			return nil, fmt.Errorf("line %d of the recording: there is no fault %q", n, reply.Fault)
		}
		replies = append(replies, reply)
	}
	return replies, sc.Err()
}
