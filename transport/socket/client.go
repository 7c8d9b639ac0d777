package socket

import (
	"context"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/contract/harness/v1/harnessv1connect"
)

// NewClient is an executor at the other end of a connection. dial is called
// when there is none yet; HTTP/2 carries every call on one.
func NewClient(dial func(context.Context) (net.Conn, error)) contract.Executor {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		Protocols:          protocols,
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx)
		},
	}
	return client{harnessv1connect.NewExecutorClient(&http.Client{Transport: t}, "http://executor",
		connect.WithReadMaxBytes(maxMessage), connect.WithAcceptCompression("gzip", nil, nil))}
}

type client struct {
	c harnessv1connect.ExecutorClient
}

func (c client) Open(ctx context.Context, req *v1.OpenRequest) (*v1.OpenResponse, error) {
	return message(c.c.Open(ctx, connect.NewRequest(req)))
}

func (c client) Submit(ctx context.Context, step *v1.Step) (*v1.StepResult, error) {
	r, err := message(c.c.Submit(ctx, connect.NewRequest(&v1.SubmitRequest{Step: step})))
	return r.GetResult(), err
}

func (c client) Watch(ctx context.Context, req *v1.WatchRequest, emit func(*v1.Event) error) error {
	s, err := c.c.Watch(ctx, connect.NewRequest(req))
	if err != nil {
		return fromWire(err)
	}
	defer s.Close()
	for s.Receive() {
		if err := emit(s.Msg().Event); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fromWire(err)
	}
	return nil
}

func (c client) Decide(ctx context.Context, req *v1.DecideRequest) (*v1.DecideResponse, error) {
	return message(c.c.Decide(ctx, connect.NewRequest(req)))
}

func (c client) Close(ctx context.Context, req *v1.CloseRequest) error {
	_, err := c.c.Close(ctx, connect.NewRequest(req))
	return fromWire(err)
}

func message[T any](r *connect.Response[T], err error) (*T, error) {
	if err != nil {
		return nil, fromWire(err)
	}
	return r.Msg, nil
}
