package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"
)

// http serves one request: a tunnel, or a request that is passed on. There is
// one request a connection, so that nothing of one host meets another.
func (p *Proxy) http(c *client) {
	q, err := c.request()
	if err != nil {
		c.answer(http.StatusBadRequest, "harness: not a request to a proxy: "+err.Error())
		return
	}
	protocol, port := "http", "80"
	if q.Method == http.MethodConnect {
		protocol, port = "connect", ""
	} else if q.URL.Scheme != "http" || q.URL.Host == "" || q.URL.User != nil {
		c.answer(http.StatusBadRequest, "harness: this is a proxy; it takes http://host/path and CONNECT host:port")
		return
	}
	if s := q.URL.Port(); s != "" {
		port = s
	}
	t := newTarget(q.URL.Hostname(), port)
	if err := t.hosted(q); err != nil && protocol == "http" {
		r := p.begun(protocol, t, no(t.String(), err.Error()))
		c.answer(http.StatusForbidden, "harness: "+Says(r))
		return
	}
	up, r, err := p.connect(protocol, t)
	switch {
	case r.Refused != nil:
		c.answer(http.StatusForbidden, "harness: "+Says(r))
		return
	case err != nil:
		c.answer(http.StatusBadGateway, fmt.Sprintf("harness: %s: %v", t, err))
		return
	}
	defer p.drop(up)
	if protocol == "connect" {
		io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		p.tunnel(c, up, t, r)
		return
	}
	var work sync.WaitGroup
	work.Go(func() { // an answer may come before the request is whole
		n, _ := io.Copy(c.TCPConn, up)
		r.ReceivedBytes = uint64(n)
		c.Close()
	})
	sent := &counter{w: up}
	if c.pass(q, sent) != nil {
		up.CloseWrite()
	}
	work.Wait()
	r.SentBytes = sent.n
}

// request reads one, with all its Host headers, which net/http leaves out.
func (c *client) request() (*http.Request, error) {
	head := &recorder{r: c.ahead}
	q, err := http.ReadRequest(bufio.NewReader(head))
	if err != nil {
		return nil, err
	}
	head.off = true
	r := textproto.NewReader(bufio.NewReader(&head.got))
	for line := ""; line == "" && err == nil; { // the request's, after empty ones
		line, err = r.ReadLine()
	}
	h, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	if q.Header["Host"] = h["Host"]; len(h["Host"]) > 1 {
		return nil, errors.New("it has more than one Host header")
	}
	return q, nil
}

// hosted is an error where a request's Host header names another host.
func (t target) hosted(q *http.Request) error {
	for _, h := range q.Header["Host"] {
		u := url.URL{Host: h}
		if strings.ContainsAny(h, "/@?#\\") || newTarget(u.Hostname(), "1").host != t.host {
			return fmt.Errorf("its Host header names another host, %q", h)
		}
	}
	return nil
}

// pass writes a request as for the server that its URL names, to which it is
// the only one of its connection.
func (c *client) pass(q *http.Request, up io.Writer) error {
	c.limit.N = math.MaxInt64
	c.SetReadDeadline(time.Time{})
	forOrigin(q)
	return q.Write(up)
}

// forOrigin makes a proxy's request one for the server that its URL names.
func forOrigin(q *http.Request) {
	for _, list := range q.Header.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			q.Header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "Te", "Trailer", "Upgrade", "Host"} {
		q.Header.Del(name)
	}
	if q.Header.Get("User-Agent") == "" {
		q.Header.Set("User-Agent", "") // none of ours
	}
	q.Host, q.Close = q.URL.Host, true
}

type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n)
	return n, err
}

func (c *client) answer(status int, text string) {
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), len(text)+1, text)
	c.CloseWrite()
}
