// Package egress is the one way to the network for a command that has one: a
// proxy on the executor's side. It takes HTTP requests, CONNECT and SOCKS5 on
// one listener, which stands in the command's own network namespace, so every
// connection belongs to one step.
//
//	p := egress.Serve(listener, egress.Config{Decide: rules})
//	connections, total := p.Close() // when the step has ended
//
// The name that the client asked of the proxy decides, never a header. It is
// resolved once, addresses that are not public are refused, and the connection
// goes to an address that was checked. Redirects come back as new requests.
package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "harness/contract/harness/v1"
)

const (
	maxOpen     = 256 // connections of a step at once
	maxListed   = 200
	maxRefused  = 800 // listed beyond the first ones
	maxHeader   = 64 << 10
	maxLine     = 16 << 10
	headerTime  = 30 * time.Second
	dialTimeout = 30 * time.Second
)

// Config is what a step's proxy lets through.
type Config struct {
	Decide  func(host string) *v1.Decision                                   // of a name in lower case, or an address
	Ask     func(ctx context.Context, host string, port uint16) *v1.Decision // where Decide says ask: waits for allow or deny
	Private []netip.Prefix                                                   // addresses that are not public and may be reached all the same
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// SystemResolver asks as the executor's machine does.
func SystemResolver(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".") // the dot: no search domains
}

// Proxy serves one step.
type Proxy struct {
	config   Config
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu      sync.Mutex
	open    map[net.Conn]bool // nil: closed
	list    []*v1.Connection
	refused int
	total   int
}

// Serve begins to accept; it returns at once.
func Serve(l net.Listener, c Config) *Proxy {
	p := &Proxy{config: c, listener: l, open: map[net.Conn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.work.Go(p.accept)
	return p
}

// Close ends every connection and says what there was: the first ones, and
// those refused.
func (p *Proxy) Close() (list []*v1.Connection, total int) {
	p.cancel()
	p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.work.Wait()
	return p.list, p.total
}

func (p *Proxy) accept() {
	slots := make(chan struct{}, maxOpen)
	for {
		select {
		case slots <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		conn, err := p.listener.Accept()
		if err != nil {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, or a client that left
			}
			<-slots
			continue
		}
		p.work.Go(func() {
			defer func() { <-slots }()
			if p.keep(conn) {
				defer p.drop(conn)
				p.serve(conn.(*net.TCPConn))
			}
		})
	}
}

// keep has Close end a connection too; false: it already has.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
}

// client is a connection whose first bytes were read ahead, within a limit.
type client struct {
	*net.TCPConn
	limit *io.LimitedReader
	ahead *bufio.Reader
}

func (p *Proxy) serve(conn *net.TCPConn) {
	conn.SetReadDeadline(time.Now().Add(headerTime))
	limit := &io.LimitedReader{R: conn, N: maxHeader}
	c := &client{conn, limit, bufio.NewReaderSize(limit, maxLine)}
	first, err := c.ahead.Peek(1)
	switch {
	case err != nil:
	case first[0] == socksVersion:
		p.socks(c)
	default:
		p.http(c)
	}
}

// begun enters a connection into the record.
func (p *Proxy) begun(protocol string, t target, refused *v1.Decision) *v1.Connection {
	c := &v1.Connection{Host: t.host, Port: uint32(t.port), Protocol: protocol, Started: timestamppb.Now(), Refused: refused}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	switch {
	case len(p.list)-p.refused < maxListed && refused == nil:
		p.list = append(p.list, c)
	case refused != nil && p.refused < maxRefused:
		p.refused++
		p.list = append(p.list, c)
	}
	return c
}

// refuse ends a connection that was begun.
func (p *Proxy) refuse(r *v1.Connection, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Refused = no(net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), reason)
	switch listed := slices.Contains(p.list, r); {
	case listed:
		p.refused++
	case p.refused < maxRefused:
		p.refused++
		p.list = append(p.list, r)
	}
}

// tunnel copies both ways until both are at their end, for a client that says
// what it was judged for: a TLS handshake names the host, and plain HTTP is one
// request to it. Between two TCP connections io.Copy moves the bytes inside
// the kernel.
func (p *Proxy) tunnel(c *client, up *net.TCPConn, t target, r *v1.Connection) {
	c.SetReadDeadline(time.Time{})
	var work sync.WaitGroup
	work.Go(func() {
		n, _ := io.Copy(c.TCPConn, up)
		r.ReceivedBytes = uint64(n)
		c.CloseWrite()
	})
	sent := &counter{w: up}
	if bad := c.begin(sent, t); bad != "" {
		p.refuse(r, bad)
		c.Close()
		up.Close()
	} else {
		c.SetReadDeadline(time.Time{})
		n, _ := io.Copy(up, c.TCPConn)
		sent.n += uint64(n)
	}
	r.SentBytes = sent.n
	up.CloseWrite()
	work.Wait()
}

// begin passes on what was read of a tunnel's first bytes, or says what is
// wrong with them.
func (c *client) begin(up io.Writer, t target) (bad string) {
	c.limit.N = maxHeader
	switch c.opening() {
	case handshake:
		name, read, err := c.hello()
		if err != nil {
			bad = "its TLS handshake cannot be read: " + err.Error()
		} else {
			bad = t.named(name)
		}
		if bad != "" {
			c.Write(accessDenied)
			return bad
		}
		up.Write(read)
	case request:
		q, err := c.request()
		if err == nil && (q.URL.Host != "" || q.Method == http.MethodConnect) {
			err = errors.New("it asks for a proxy in a tunnel")
		}
		if err == nil {
			err = t.hosted(q)
		}
		if err != nil {
			c.answer(http.StatusForbidden, "harness: refused: "+t.String()+", "+err.Error())
			return err.Error()
		}
		q.URL.Host = t.String()
		c.pass(q, up)
		return ""
	}
	early, _ := c.ahead.Peek(c.ahead.Buffered())
	up.Write(early)
	return ""
}
