package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// Client is an approver's way to the questions of another machine, where
// harness approvals serve runs.
type Client struct {
	URL string
	Key string // private
}

// Waiting is the questions without an answer.
func (c *Client) Waiting(ctx context.Context) ([]*v1.Approval, error) {
	data, err := c.post(ctx, &v1.DecideRequest{})
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", c.URL, err)
	}
	list := make([]*v1.Approval, len(raw))
	for i := range raw {
		list[i] = new(v1.Approval)
		if err := contract.UnmarshalJSON(raw[i], list[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", c.URL, err)
		}
	}
	return list, nil
}

// Decide signs an answer and sends it.
func (c *Client) Decide(ctx context.Context, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	data, err := c.post(ctx, d)
	if err != nil {
		return nil, err
	}
	r := new(v1.DecideResponse)
	return r, contract.UnmarshalJSON(data, r)
}

func (c *Client) post(ctx context.Context, d *v1.DecideRequest) ([]byte, error) {
	d = proto.CloneOf(d)
	d.Time = timestamppb.Now()
	if err := Sign(d, c.Key); err != nil {
		return nil, err
	}
	body, err := contract.MarshalJSON(d)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.URL, "/")+"/approvals", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", c.URL, strings.TrimSpace(string(data)))
	}
	return data, err
}
