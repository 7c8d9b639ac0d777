package sandbox

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/hands"
)

// gatekeeper answers what the hands ask about a step's programs.
type gatekeeper struct {
	conn    net.Conn
	judge   Gate
	refused []*v1.Decision // in order; to be read after done
	done    chan struct{}
}

func newGatekeeper(judge Gate) (*gatekeeper, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "gate"), os.NewFile(uintptr(fds[1]), "gate")
	defer ours.Close()
	k := &gatekeeper{judge: judge, done: make(chan struct{})}
	if k.conn, err = net.FileConn(ours); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	go k.serve()
	return k, theirs, nil
}

func (k *gatekeeper) serve() {
	defer close(k.done)
	in := json.NewDecoder(k.conn)
	for {
		var p hands.Program
		if in.Decode(&p) != nil {
			return
		}
		answer := byte(hands.Run)
		refused, more := k.judge(p)
		switch {
		case refused != nil:
			k.refused = append(k.refused, refused)
			answer = hands.Refuse
		case more:
			answer = hands.More
		}
		if _, err := k.conn.Write([]byte{answer}); err != nil {
			return
		}
	}
}

func (k *gatekeeper) close() {
	k.conn.Close()
	<-k.done
}

// unseen is the verdict on a program that does not let itself be looked at.
var unseen = &v1.Decision{Verdict: v1.Decision_deny, Rule: "default", Source: "built-in", Reason: "what it is could not be found out before its start"}

// record is the hands' list with the decisions on those refused.
func (k *gatekeeper) record(list []hands.Exec) (execs []*v1.Exec) {
	k.close()
	next := 0
	for _, e := range list {
		x := &v1.Exec{Program: e.Program, Cwd: e.Cwd, Started: timestamppb.New(e.Started), WallMs: ms(e.Wall), CpuMs: ms(e.CPU)}
		for _, a := range e.Argv {
			x.Argv = append(x.Argv, strings.ToValidUTF8(a, "\uFFFD"))
		}
		if e.Code != nil {
			code := int32(*e.Code)
			x.ExitCode = &code
		}
		switch {
		case e.Refused && !e.Unseen && next < len(k.refused):
			x.Refused = k.refused[next]
			next++
		case e.Refused:
			x.Refused = unseen
		}
		execs = append(execs, x)
	}
	return execs
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// has is whether the machine enforces a capability.
func (s *Sandbox) has(name string) bool {
	for _, c := range s.caps {
		if c.Name == name {
			return c.Enforced
		}
	}
	return false
}
