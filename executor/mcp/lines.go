package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// maxNoise is how many lines that are no messages a server may print.
const maxNoise = 1000

// lines gives on the messages of a server, and not what else it prints.
type lines struct {
	io.Closer
	in    *bufio.Reader
	rest  []byte
	noise int
}

func newLines(r io.ReadCloser) *lines { return &lines{Closer: r, in: bufio.NewReaderSize(r, 64<<10)} }

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if err != nil {
			return 0, err
		}
		var m struct{ JSONRPC string }
		if json.Unmarshal(line, &m) == nil && m.JSONRPC == "2.0" {
			l.rest = append(line, '\n')
		} else if l.noise++; len(line) > 0 && l.noise > maxNoise {
			return 0, fmt.Errorf("the server printed more than %d lines that are no JSON-RPC messages", maxNoise)
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lines) line() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxMessage {
			return nil, fmt.Errorf("the server sent a message of more than %d bytes", maxMessage)
		}
		if err == nil {
			return bytes.TrimSpace(line), nil
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
	}
}
