package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor"
	"harness/executor/policy"
	"harness/executor/sandbox"
	"harness/transport/socket"
)

// The test binary is its own hands, as the program is.
func TestMain(m *testing.M) {
	sandbox.HandsMain()
	os.Exit(m.Run())
}

// ways is each way to an executor.
var ways = map[string]func(t *testing.T, x *executor.Executor) contract.Executor{
	"in-process": func(_ *testing.T, x *executor.Executor) contract.Executor { return x },
	"pair":       overPair,
	"unix": func(t *testing.T, x *executor.Executor) contract.Executor {
		path := listen(t, x)
		return socket.NewClient(func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		})
	},
}

func listen(t *testing.T, x *executor.Executor) string {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, func(ctx context.Context) error { return socket.Serve(ctx, ln, x) })
	return path
}

func serve(t *testing.T, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
}

// bench is a workspace, an executor on it, and a session.
type bed struct {
	t    testing.TB
	dir  string
	x    contract.Executor
	n    int
	id   string
	open *v1.OpenResponse
}

func newExecutor(t testing.TB, dir, state string, rules policy.Options) *executor.Executor {
	t.Helper()
	x, err := executor.New(executor.Config{Workspace: dir, State: state, Policy: rules, Sandbox: os.Getenv(onRung)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Shutdown(); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return x
}

func newBed(t testing.TB, rules policy.Options, way func(*executor.Executor) contract.Executor) *bed {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newBedOn(t, dir, rules, way)
}

func newBedOn(t testing.TB, dir string, rules policy.Options, way func(*executor.Executor) contract.Executor) *bed {
	t.Helper()
	b := &bed{t: t, dir: dir, id: "x1"}
	b.x = way(newExecutor(t, b.dir, t.TempDir(), rules))
	var err error
	if b.open, err = b.x.Open(t.Context(), &v1.OpenRequest{SessionId: b.id}); err != nil {
		t.Fatal(err)
	}
	if !b.open.MeetsMinimum {
		t.Fatalf("no sandbox here: %v", b.open.Capabilities)
	}
	return b
}

func direct(x *executor.Executor) contract.Executor { return x }

func (b *bed) step(action string, args map[string]any) *v1.Step {
	b.t.Helper()
	s, err := structpb.NewStruct(args)
	if err != nil {
		b.t.Fatal(err)
	}
	b.n++
	return &v1.Step{StepId: "s" + time.Now().Format("150405.000000000") + "_" + string(rune('a'+b.n%26)), SessionId: b.id, Action: action, Args: s}
}

func (b *bed) submit(step *v1.Step) *v1.StepResult {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	r, err := b.x.Submit(ctx, step)
	if err != nil {
		b.t.Fatalf("%s: %v", step.Action, err)
	}
	return r
}

func (b *bed) do(action string, args map[string]any) *v1.StepResult {
	b.t.Helper()
	return b.submit(b.step(action, args))
}

func (b *bed) sh(cmd string) *v1.StepResult {
	b.t.Helper()
	return b.do(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 20})
}

func (b *bed) write(path, text string) {
	b.t.Helper()
	p := filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) read(path string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, path))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bed) want(r *v1.StepResult, status v1.Status) *v1.StepResult {
	b.t.Helper()
	if r.Status != status {
		b.t.Fatalf("%s: status %v, want %v: %v %v", r.Action, r.Status, status, r.Error, r.GetOutput().GetText())
	}
	return r
}

var allowAll = policy.Options{Allow: []string{"Bash(*)"}}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in %q", p, text)
		}
	}
}
