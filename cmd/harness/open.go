package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/transport/socket"
)

// connect gives an executor for a folder: a child, or the one at a URL.
func connect(dir, url string, f policyFlags) (contract.Executor, func() error, error) {
	if url == "" {
		return startExecutor(dir, f)
	}
	path, ok := strings.CutPrefix(url, "unix:")
	if !ok {
		return nil, nil, &exit{2, fmt.Errorf("--executor takes unix:PATH, not %q", url)}
	}
	x := socket.NewClient(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})
	return x, func() error { return nil }, nil
}

// open opens a session; where the executor ended at once, that is the error.
func open(ctx context.Context, x contract.Executor, stop func() error, req *v1.OpenRequest) (*v1.OpenResponse, error) {
	resp, err := x.Open(ctx, req)
	if err == nil {
		return resp, nil
	}
	var ce *contract.Error
	if serr := stop(); serr != nil && !errors.As(err, &ce) {
		return nil, serr
	}
	return nil, err
}
