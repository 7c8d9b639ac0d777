// Package jsonl is the surface for programs: the session's events on a writer,
// one JSON object a line, "type" first. Nobody is there to be asked.
package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	v1 "harness/contract/harness/v1"
	"harness/planner/session"
)

// Surface writes events. Yes answers every question with yes.
type Surface struct {
	W   io.Writer
	Yes bool
	mu  sync.Mutex
}

// Event writes one; what only the log needs is left out.
func (s *Surface) Event(e session.Event) {
	if strings.HasPrefix(e.Type, "message.") {
		return
	}
	head, err := json.Marshal(e.Type)
	if err != nil {
		return
	}
	stamp, err := json.Marshal(e.Time.UTC().Format(time.RFC3339Nano))
	if err != nil {
		return
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%s,"seq":%d,"time":%s`, head, e.Seq, stamp)
	if data := bytes.TrimSpace(e.Data); len(data) > 2 && data[0] == '{' {
		b.WriteByte(',')
		var flat bytes.Buffer
		if json.Compact(&flat, data[1:len(data)-1]) == nil {
			b.Write(flat.Bytes())
		} else {
			b.Write(bytes.ReplaceAll(data[1:len(data)-1], []byte("\n"), []byte(" ")))
		}
	}
	b.WriteString("}\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.W.Write(b.Bytes())
}

// Delta and Output are parts of events that come whole later.
func (*Surface) Delta(string, string)  {}
func (*Surface) Output(string, string) {}

// Ask says no where --yes was not given.
func (s *Surface) Ask(_ context.Context, a *v1.Approval) (*v1.DecideRequest, error) {
	if s.Yes {
		return &v1.DecideRequest{Answer: v1.DecideRequest_allow, Surface: "--yes"}, nil
	}
	return &v1.DecideRequest{Answer: v1.DecideRequest_deny, Surface: "jsonl", Message: "nobody is there to be asked"}, nil
}

// Question has nobody to answer it.
func (*Surface) Question(context.Context, string) (string, error) {
	return "", errors.New("nobody is there to be asked")
}
