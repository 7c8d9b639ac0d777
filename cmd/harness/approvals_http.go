package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/approval"
)

type approvalsServe struct {
	Listen string `default:"127.0.0.1:8377" help:"Where to listen." placeholder:"HOST:PORT"`
}

func (c *approvalsServe) Run() error {
	if len(approvers()) == 0 {
		return &exit{52, fmt.Errorf("nobody could answer: put public keys into %s/approvers (harness approvals key makes one)", configDir())}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return &exit{2, err}
	}
	fmt.Fprintf(os.Stderr, "harness: answers at http://%s/approvals\n", ln.Addr())
	srv := &http.Server{Handler: http.HandlerFunc(serveAnswer), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	context.AfterFunc(ctx, func() { srv.Close() })
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const maxAnswer = 64 << 10

// serveAnswer takes a signed DecideRequest in JSON: an answer, or one that says
// nothing and so asks for the list of questions.
func serveAnswer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/approvals" || r.Method != http.MethodPost {
		http.Error(w, "POST /approvals takes a signed answer", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	d := new(v1.DecideRequest)
	if err == nil {
		err = contract.UnmarshalJSON(body, d)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who, err := approval.Check(d, approvers())
	if age := time.Since(d.Time.AsTime()).Abs(); err == nil && age > 5*time.Minute {
		err = fmt.Errorf("the request's time is %v off", age.Round(time.Second))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	d.Approver = who
	out, err := answered(r.Context(), d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}

func answered(ctx context.Context, d *v1.DecideRequest) ([]byte, error) {
	if d.Answer != v1.DecideRequest_answer_unspecified {
		r, err := answer(ctx, d)
		if err != nil {
			return nil, err
		}
		return contract.MarshalJSON(r)
	}
	list, err := executor.Waiting(executorDir())
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(list))
	for i, a := range list {
		if parts[i], err = contract.MarshalJSON(a); err != nil {
			return nil, err
		}
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']'), nil
}
