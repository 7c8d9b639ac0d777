package executor

import (
	"bytes"
	"os"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/artifact"
)

// takesInput says whether a step's command gets a standard input that
// write_stdin writes to. All others find it empty.
func takesInput(step *v1.Step) bool {
	return step.Action == contract.RunCommand && step.Mode != v1.Step_sync
}

// openStdin makes the pipe through which an async command gets its input.
func (l *live) openStdin() (err error) {
	l.input, l.stdin, err = os.Pipe()
	return err
}

func (l *live) closeStdin() {
	l.set(func() {
		if l.stdin != nil {
			l.stdin.Close()
			l.stdin = nil
		}
	})
}

// keptPrompt is how much of the end of a command's output may be a prompt.
const keptPrompt = 400

// printed keeps the end of what a command prints.
func (l *live) printed(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, b[max(0, len(b)-keptPrompt):]...)
	l.last = l.last[max(0, len(l.last)-keptPrompt):]
}

// prompt is the last line that the command printed, with an end or without; the caller holds l.mu.
func (l *live) prompt() string {
	line := bytes.TrimRight(l.last, "\r\n")
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	return artifact.Harmless(line)
}

// inputPause is how often it is looked whether a command waits for input.
const inputPause = 250 * time.Millisecond

// watchInput says so when the command of a step waits for input, until the
// function that it returns is called.
func (s *session) watchInput(l *live) func() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(inputPause)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.lookForInput(l)
			}
		}
	}()
	return func() { close(stop); <-done }
}

func (s *session) lookForInput(l *live) {
	l.mu.Lock()
	w, was := l.stdin, l.waits
	now := w != nil && readerWaits(w)
	prompt := l.prompt()
	l.mu.Unlock()
	if now == was {
		return
	}
	l.set(func() { l.waits = now })
	if now {
		s.event(&v1.Event{StepId: l.step.StepId, Event: &v1.Event_NeedsInput{NeedsInput: &v1.NeedsInput{Prompt: prompt}}})
	}
}
