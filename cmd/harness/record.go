package main

import (
	"errors"
	"net/http"
	"os"

	"harness/planner/model"
	"harness/planner/model/recorded"
)

// recorder is the HTTP client that writes the recording of --record, nil without
// it, and what closes the file. It is open before the planner gives up its rights.
func (c *runCmd) recorder() (*http.Client, func() error, error) {
	if c.Record == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.OpenFile(c.Record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // it holds what the model saw
	if err != nil {
		return nil, nil, &exit{42, err}
	}
	r := &recorded.Recorder{To: f, Secrets: recorded.Secrets(os.Environ()), Via: http.DefaultTransport}
	client := *model.Client(nil)
	client.Transport = r
	return &client, func() error { return errors.Join(r.Err(), f.Close()) }, nil
}
