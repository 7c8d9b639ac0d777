// Package socket carries the contract over a stream connection: a Unix socket
// pair to a child process, a Unix socket of a listening executor, or TCP.
// It is Connect over HTTP/2 without TLS, so that gRPC clients and plain
// HTTP+JSON speak to the same listener:
//
//	curl --unix-socket S -H 'Content-Type: application/json' \
//	  -d '{"session_id":"s1"}' http://executor/harness.v1.Executor/Open
package socket

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// maxMessage bounds one message: a step of the largest size and its frame.
const maxMessage = contract.MaxStepBytes + 1<<20

var codes = map[v1.Error_Kind]connect.Code{
	v1.Error_invalid:        connect.CodeInvalidArgument,
	v1.Error_unknown_action: connect.CodeInvalidArgument,
	v1.Error_too_large:      connect.CodeResourceExhausted,
	v1.Error_not_found:      connect.CodeNotFound,
	v1.Error_denied:         connect.CodePermissionDenied,
	v1.Error_unavailable:    connect.CodeUnavailable,
	v1.Error_id_reused:      connect.CodeAlreadyExists,
	v1.Error_expired:        connect.CodeFailedPrecondition,
	v1.Error_cancelled:      connect.CodeCanceled,
}

// toWire puts an error's kind, hint and field beside its message.
func toWire(err error) error {
	if err == nil {
		return nil
	}
	e := contract.AsError(err)
	code, ok := codes[e.Kind]
	if !ok {
		code = connect.CodeInternal
	}
	out := connect.NewError(code, errors.New(e.Message))
	if d, derr := connect.NewErrorDetail(e.Proto()); derr == nil {
		out.AddDetail(d)
	}
	return out
}

// fromWire is toWire's inverse; an error without our detail stays as it is.
func fromWire(err error) error {
	var ce *connect.Error
	if err == nil || !errors.As(err, &ce) {
		return err
	}
	for _, d := range ce.Details() {
		if v, verr := d.Value(); verr == nil {
			if e, ok := v.(*v1.Error); ok {
				return contract.FromProto(e)
			}
		}
	}
	switch ce.Code() {
	case connect.CodeInvalidArgument:
		return contract.Errorf(v1.Error_invalid, "%s", ce.Message())
	case connect.CodeResourceExhausted:
		return contract.Errorf(v1.Error_too_large, "%s", ce.Message())
	}
	return err
}

// strictJSON refuses unknown fields, which Connect's own codec drops.
type strictJSON struct{}

func (strictJSON) Name() string { return "json" }

func (strictJSON) Marshal(m any) ([]byte, error) {
	return contract.MarshalJSON(m.(proto.Message))
}

func (strictJSON) Unmarshal(data []byte, m any) error {
	return contract.UnmarshalJSON(data, m.(proto.Message))
}
