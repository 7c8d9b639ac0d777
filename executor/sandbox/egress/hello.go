package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// What a client says first in a tunnel.
type opening int

const (
	closed opening = iota // nothing
	handshake
	request
	other // of another protocol
)

const handshakeRecord = 0x16 // RFC 8446, 5.1

// opening looks at the first bytes, without taking them. What has a method's
// form is a request where its line names HTTP, empty lines before it or not.
func (c *client) opening() opening {
	if _, err := c.ahead.Peek(1); err != nil {
		return closed
	}
	c.SetReadDeadline(time.Now().Add(headerTime))
	for n := 1; ; n = max(n, c.ahead.Buffered()) + 1 {
		b, err := c.ahead.Peek(max(n, c.ahead.Buffered()))
		if b[0] == handshakeRecord {
			return handshake
		}
		b = bytes.TrimLeft(b, "\r\n")
		line, _, whole := bytes.Cut(b, []byte("\n"))
		method, _, spaced := bytes.Cut(line, []byte(" "))
		if strings.Trim(string(method), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "" {
			return other
		}
		switch {
		case spaced && bytes.Contains(line, []byte(" HTTP/")):
			return request
		case whole || err != nil && !spaced:
			return other
		case err != nil:
			return request // too long a line, or half a one: the reader refuses it
		}
	}
}

var errSeen = errors.New("the hello was seen")

// hello is the server's name in a TLS handshake's first message, and the bytes
// that were read for it.
func (c *client) hello() (name string, read []byte, err error) {
	r := &recorder{r: c.ahead}
	err = tls.Server(seen{c.TCPConn, r}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errSeen
	}}).Handshake()
	if errors.Is(err, errSeen) {
		err = nil
	}
	return name, r.got.Bytes(), err
}

// named is what is wrong with a handshake for a host: "" nothing.
func (t target) named(name string) string {
	switch {
	case strings.EqualFold(name, t.host), name == "" && t.addr.IsValid(): // addresses are not sent
		return ""
	case name == "":
		return "its TLS handshake names no host"
	}
	return fmt.Sprintf("its TLS handshake names another host, %q", name)
}

// accessDenied is a fatal alert, RFC 8446, 6.
var accessDenied = []byte{0x15, 3, 3, 0, 2, 2, 49}

// seen is a connection that is only read from.
type seen struct {
	net.Conn
	r io.Reader
}

func (s seen) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s seen) Write(b []byte) (int, error) { return len(b), nil }

// recorder keeps what was read.
type recorder struct {
	r   io.Reader
	got bytes.Buffer
	off bool
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if !r.off {
		r.got.Write(b[:n])
	}
	return n, err
}
