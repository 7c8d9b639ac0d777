package artifact

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	v1 "harness/contract/harness/v1"
)

// MaxOutput is how much of one command's output is kept; a command that
// prints more is ended with limit "output".
const MaxOutput = 4 << 30

// Output collects what a command prints in constant memory: head and tail for
// the model, the whole on disk once it is more than those.
type Output struct {
	mu         sync.Mutex
	store      *Store
	budget     int // bytes of text wanted
	head, tail []byte
	at         int // where the next byte of the tail ring goes
	total      uint64
	whole      *writer
	err        error
	exact      bool // somebody reads by offsets, so the bytes are kept as they are
	given      bool // Result was called
}

// NewOutput collects for a text of about budget bytes.
func NewOutput(s *Store, budget int) *Output {
	return &Output{store: s, budget: budget}
}

// Write takes the next bytes. It never fails: what could not be kept is said by Result.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	o.total += uint64(n)
	if o.whole != nil && o.err == nil {
		_, o.err = o.whole.Write(b)
	}
	if room := o.budget - len(o.head); o.whole == nil && len(b) <= room {
		o.head = append(o.head, b...)
		return n, nil
	}
	if o.whole == nil {
		if o.whole, o.err = o.store.create(); o.err == nil {
			if _, o.err = o.whole.Write(o.head); o.err == nil {
				_, o.err = o.whole.Write(b)
			}
		} else {
			o.whole = &writer{}
		}
		half := o.budget / 2
		all := append(o.head, b...)
		o.head = all[:half:half]
		o.tail = make([]byte, 0, o.budget-half)
		b = all[half:]
	}
	o.ring(b)
	return n, nil
}

func (o *Output) ring(b []byte) {
	size := cap(o.tail)
	if len(b) >= size {
		o.tail = append(o.tail[:0], b[len(b)-size:]...)
		o.at = 0
		return
	}
	if room := size - len(o.tail); room > 0 {
		k := min(room, len(b))
		o.tail = append(o.tail, b[:k]...)
		b = b[k:]
	}
	for len(b) > 0 {
		k := copy(o.tail[o.at:], b)
		o.at = (o.at + k) % size
		b = b[k:]
	}
}

// Total is the number of bytes so far.
func (o *Output) Total() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// ReadAt reads what was printed so far, from any offset; io.EOF is the end of
// it for now. After Result it is os.ErrClosed: what was kept is in the store.
func (o *Output) ReadAt(b []byte, offset int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exact = true
	switch {
	case o.given:
		return 0, os.ErrClosed
	case o.err != nil:
		return 0, o.err
	case o.whole != nil:
		return o.whole.f.ReadAt(b, offset)
	case offset >= int64(len(o.head)):
		return 0, io.EOF
	}
	return copy(b, o.head[offset:]), nil
}

// Result is the output as a step gives it out. The error says why the whole
// could not be kept; head and tail are there all the same.
func (o *Output) Result() (*v1.Output, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.given = true
	if o.whole == nil {
		out := &v1.Output{Text: Harmless(o.head), TotalBytes: o.total}
		if o.exact && out.Text != string(o.head) {
			out.Artifact, _, o.err = o.store.Put(bytes.NewReader(o.head), MaxOutput)
		}
		return out, o.err
	}
	tail := append(append([]byte{}, o.tail[o.at:]...), o.tail[:o.at]...)
	omitted := o.total - uint64(len(o.head)) - uint64(len(tail))
	out := &v1.Output{TotalBytes: o.total, OmittedBytes: omitted}
	switch {
	case o.err != nil && o.whole.f != nil:
		o.whole.abandon()
	case o.err == nil:
		out.Artifact, o.err = o.whole.keep()
	}
	mark := ""
	if omitted > 0 {
		mark = fmt.Sprintf("\n[… %d bytes left out …]\n", omitted)
	}
	out.Text = Harmless(trimPartial(o.head)) + mark + Harmless(trimLeading(tail))
	return out, o.err
}

// Copy reads r to its end into o, giving each piece to also, and stops with
// io.ErrShortBuffer when there is more than MaxOutput.
func (o *Output) Copy(r io.Reader, also func([]byte)) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			o.Write(buf[:n])
			also(buf[:n])
		}
		if o.Total() > MaxOutput {
			return io.ErrShortBuffer
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
