package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/transport/socket"
)

// answerDoor is how another terminal reaches the executor that holds a step: a
// socket in the executor's own state folder, which only this user may enter and
// no sandbox sees. It is made when the first step is held, and takes answers only.
type answerDoor struct {
	x    *executor.Executor
	once sync.Once
	path string
	ln   net.Listener
	done chan struct{}
}

func doorsDir() string { return filepath.Join(executorDir(), "doors") }

func (d *answerDoor) open(ctx context.Context) {
	d.once.Do(func() {
		if err := d.listen(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "harness: no answer can come from another terminal:", err)
		}
	})
}

func (d *answerDoor) listen(ctx context.Context) error {
	if err := os.MkdirAll(doorsDir(), 0o700); err != nil {
		return err
	}
	d.path = filepath.Join(doorsDir(), rand.Text())
	err := near(d.path, func(path string) (err error) {
		d.ln, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return err
	}
	d.done = make(chan struct{})
	go func() {
		defer close(d.done)
		socket.Serve(ctx, d.ln, answersOnly{x: d.x})
	}()
	return nil
}

func (d *answerDoor) close() {
	if d.ln != nil {
		d.ln.Close()
		<-d.done
		os.Remove(d.path) // the listener knows it by another name where it is long
	}
}

// near gives a path that is short enough for a socket: the kernel takes 107 bytes.
func near(path string, use func(string) error) error {
	if len(path) <= 107 || runtime.GOOS != "linux" {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// answersOnly is an executor that can be answered, and nothing else.
type answersOnly struct{ x *executor.Executor }

func (a answersOnly) Decide(ctx context.Context, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	return a.x.Decide(ctx, d)
}

func refused() error { return contract.Errorf(v1.Error_denied, "this door takes answers only") }

func (a answersOnly) Open(context.Context, *v1.OpenRequest) (*v1.OpenResponse, error) {
	return nil, refused()
}
func (a answersOnly) Submit(context.Context, *v1.Step) (*v1.StepResult, error) { return nil, refused() }
func (a answersOnly) Watch(context.Context, *v1.WatchRequest, func(*v1.Event) error) error {
	return refused()
}
func (a answersOnly) Close(context.Context, *v1.CloseRequest) error { return refused() }

// answer takes an answer to whoever holds the session: an executor behind a
// door, or nobody, and then it is left in the journal.
func answer(ctx context.Context, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	doors, err := os.ReadDir(doorsDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, door := range doors {
		r, err := through(ctx, filepath.Join(doorsDir(), door.Name()), d)
		var ce *contract.Error
		switch {
		case err == nil, errors.As(err, &ce) && ce.Kind != v1.Error_not_found:
			return r, err
		case ce == nil: // nobody behind it: a kill leaves one
			os.Remove(filepath.Join(doorsDir(), door.Name()))
		}
	}
	return executor.Leave(executor.Config{State: executorDir(), Approvers: approvers()}, d)
}

func through(ctx context.Context, path string, d *v1.DecideRequest) (*v1.DecideResponse, error) {
	x := socket.NewClient(func(ctx context.Context) (conn net.Conn, err error) {
		err = near(path, func(p string) error {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", p)
			return err
		})
		return conn, err
	})
	return x.Decide(ctx, d)
}
