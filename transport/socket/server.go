package socket

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/contract/harness/v1/harnessv1connect"
)

// Serve answers on every connection of ln until ctx ends.
func Serve(ctx context.Context, ln net.Listener, x contract.Executor) error {
	mux := http.NewServeMux()
	mux.Handle(harnessv1connect.NewExecutorHandler(handler{x},
		connect.WithCodec(strictJSON{}), connect.WithReadMaxBytes(maxMessage)))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ServeConn answers on one connection until it closes or ctx ends.
func ServeConn(ctx context.Context, conn net.Conn, x contract.Executor) error {
	return Serve(ctx, &oneConn{conn: conn, done: make(chan struct{})}, x)
}

// oneConn is a listener that gives one connection and ends with it.
type oneConn struct {
	conn  net.Conn
	given bool
	once  sync.Once
	done  chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.given {
		<-l.done
		return nil, net.ErrClosed
	}
	l.given = true
	return &notifyConn{Conn: l.conn, closed: l.end}, nil
}

func (l *oneConn) end()           { l.once.Do(func() { close(l.done) }) }
func (l *oneConn) Close() error   { l.end(); return l.conn.Close() }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

type notifyConn struct {
	net.Conn
	closed func()
}

func (c *notifyConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

type handler struct{ x contract.Executor }

func (h handler) Open(ctx context.Context, r *connect.Request[v1.OpenRequest]) (*connect.Response[v1.OpenResponse], error) {
	return respond(h.x.Open(ctx, r.Msg))
}

func (h handler) Submit(ctx context.Context, r *connect.Request[v1.SubmitRequest]) (*connect.Response[v1.SubmitResponse], error) {
	result, err := h.x.Submit(ctx, r.Msg.Step)
	return respond(&v1.SubmitResponse{Result: result}, err)
}

func (h handler) Watch(ctx context.Context, r *connect.Request[v1.WatchRequest], s *connect.ServerStream[v1.WatchResponse]) error {
	return toWire(h.x.Watch(ctx, r.Msg, func(e *v1.Event) error {
		return s.Send(&v1.WatchResponse{Event: e})
	}))
}

func (h handler) Decide(ctx context.Context, r *connect.Request[v1.DecideRequest]) (*connect.Response[v1.DecideResponse], error) {
	return respond(h.x.Decide(ctx, r.Msg))
}

func (h handler) Close(ctx context.Context, r *connect.Request[v1.CloseRequest]) (*connect.Response[v1.CloseResponse], error) {
	return respond(&v1.CloseResponse{}, h.x.Close(ctx, r.Msg))
}

func respond[T any](m *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, toWire(err)
	}
	return connect.NewResponse(m), nil
}
