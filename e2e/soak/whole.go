package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"harness/executor/audit"
	"harness/planner/model/recorded"
)

// Whole runs the whole program on a task of o.Steps commands and kills its
// planner, its executor, or both at random moments, then goes on with the
// session, o.Sessions times in a row; at last it lets it come to its end.
func Whole(o Options) (Report, error) {
	if err := o.prepare(); err != nil {
		return Report{}, err
	}
	before := mounts()
	var replies []recorded.Reply
	for n := range o.Steps {
		args, err := json.Marshal(map[string]string{"cmd": fmt.Sprintf("sleep %s & echo x >> f%d; sleep 0.0%d", o.mark(), n, n%4)})
		if err != nil {
			return Report{}, err
		}
		replies = append(replies, recorded.Reply{Calls: []recorded.Call{{Name: "run_command", Args: args}}})
	}
	for range o.Sessions + 2 { // each run that goes on after the end hears it again
		replies = append(replies, recorded.Reply{Text: "Done."})
	}
	server, err := recorded.Serve(replies)
	if err != nil {
		return Report{}, err
	}
	defer server.Close()
	o.Env = append(o.Env, "ANTHROPIC_BASE_URL="+server.URL(), "ANTHROPIC_API_KEY=k")
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	r := Report{Status: map[string]int{}}
	for i := range o.Sessions {
		killed, err := o.killRun(i == 0, rng)
		if err != nil {
			return r, err
		}
		r.Kills += killed
	}
	if out, code := o.run(false); code != 59 {
		return r, fmt.Errorf("the last run ended with %d: %s", code, out)
	}
	return r, errors.Join(o.compare(&r), o.nothingLeft(before))
}

func (o Options) command(first bool) *exec.Cmd {
	args := []string{"run", "-C", o.workspace(), "-m", "anthropic/recorded", "--no-check", "--allow", "Bash(*)"}
	if first {
		args = append(args, "make the files")
	} else {
		args = append(args, "-c")
	}
	cmd := exec.Command(o.Program, args...)
	cmd.Env = o.environ()
	return cmd
}

func (o Options) run(first bool) (string, int) {
	cmd := o.command(first)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// killRun lets a run live for a while, kills, and waits until its processes are gone.
func (o Options) killRun(first bool, rng *rand.Rand) (kills int, err error) {
	cmd := o.command(first)
	said, err := os.Create(filepath.Join(o.Dir, "said"))
	if err != nil {
		return 0, err
	}
	defer said.Close()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	time.Sleep(time.Duration(rng.Int64N(int64(o.Kill))))
	for begin := time.Now(); first && time.Since(begin) < time.Minute; time.Sleep(time.Millisecond) {
		if text, _ := os.ReadFile(said.Name()); bytes.Contains(text, []byte("session ")) {
			break // there is a session to go on with
		}
	}
	victims := [][]int{{cmd.Process.Pid}, o.executors(), append(o.executors(), cmd.Process.Pid)}[rng.IntN(3)]
	for _, pid := range victims {
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			kills++
		}
	}
	cmd.Wait()
	for begin := time.Now(); len(o.executors()) > 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			return kills, errors.New("an executor outlives its planner")
		}
	}
	return kills, nil
}

// executors is the processes that serve our workspace.
func (o Options) executors() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		data, _ := os.ReadFile(p)
		if line := string(data); strings.Contains(line, "\x00executor\x00") && strings.Contains(line, o.workspace()+"\x00") {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// compare holds the executor's record, the session's log and the files against each other.
func (o Options) compare(r *Report) error {
	show := func(args ...string) ([]byte, error) {
		cmd := exec.Command(o.Program, args...)
		cmd.Env = o.environ()
		return cmd.Output()
	}
	if out, err := show("audit", "verify"); err != nil {
		return fmt.Errorf("audit verify: %w: %s", err, out)
	}
	sessions, err := audit.Sessions(o.state())
	if err != nil || len(sessions) != 1 {
		return fmt.Errorf("sessions %v: %w", sessions, err)
	}
	told, cmds, err := o.told(sessions[0], show)
	if err != nil {
		return err
	}
	started, ended := map[string]int{}, map[string]string{}
	err = audit.Each(o.state(), audit.Query{}, func(e audit.Entry) error {
		switch e.Kind {
		case audit.Started:
			started[e.Step]++
		case audit.Finished:
			ended[e.Step] = e.Status
		}
		return nil
	})
	errs := []error{err}
	for id, status := range ended {
		if started[id] > 1 {
			errs = append(errs, fmt.Errorf("%s ran %d times", id, started[id]))
		}
		cmd, known := cmds[id]
		if !known {
			continue // the run's own look at the folder
		}
		if len(told[id]) != 1 || told[id][0] != status {
			errs = append(errs, fmt.Errorf("%s ended %s on record, the session was told %v", id, status, told[id]))
		}
		r.Steps++
		r.Status[status]++
		_, name, _ := strings.Cut(cmd, ">> ")
		name, _, _ = strings.Cut(name, ";")
		data, err := os.ReadFile(filepath.Join(o.workspace(), name))
		if ok := status == "ok"; ok != (err == nil) && status != "cancelled" || err == nil && string(data) != "x\n" {
			errs = append(errs, fmt.Errorf("%s: %s ended %s, it has %q", name, id, status, data))
		}
	}
	return errors.Join(errs...)
}

// told is the ends that a session's log has for each step of the model, and their commands.
func (o Options) told(session string, show func(...string) ([]byte, error)) (told map[string][]string, cmds map[string]string, err error) {
	out, err := show("sessions", "show", "--json", session)
	if err != nil {
		return nil, nil, fmt.Errorf("sessions show: %w", err)
	}
	told, cmds = map[string][]string{}, map[string]string{}
	for line := range bytes.Lines(out) {
		var e struct {
			Type string
			Item struct {
				Step struct {
					ID   string `json:"step_id"`
					Args struct{ Cmd string }
				}
				Result struct{ Status string }
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, nil, fmt.Errorf("%w: %s", err, line)
		}
		if s := e.Item.Step; s.ID != "" && s.Args.Cmd != "" {
			cmds[s.ID] = s.Args.Cmd
			if e.Type == "item.completed" {
				told[s.ID] = append(told[s.ID], e.Item.Result.Status)
			}
		}
	}
	return told, cmds, nil
}
