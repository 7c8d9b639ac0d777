package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "harness/contract/harness/v1"
)

// named is a proxy whose rules allow allowed.test and the loopback address, all of it on loopback.
func named(t *testing.T) (*Proxy, string) {
	return serve(t, Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Decide: func(host string) *v1.Decision {
			if host == "allowed.test" || host == "127.0.0.1" || host == "xn--bcher-kva.test" {
				return &v1.Decision{Verdict: v1.Decision_allow}
			}
			return &v1.Decision{Verdict: v1.Decision_deny, Reason: "no rule"}
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}})
}

// tunnelTo is a connection through CONNECT.
func tunnelTo(t *testing.T, at, host string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", host)
	line := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, line); err != nil || !strings.Contains(string(line), " 200 ") {
		t.Fatalf("%q, %v", line, err)
	}
	return conn
}

// A TLS server behind an allowed name serves other names too: the handshake
// must name the one that was judged.
func TestHandshakeOfAnother(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, "hello") }))
	var mu sync.Mutex
	saw := map[string]int{}
	server.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		saw[h.ServerName]++
		return nil, nil
	}}
	server.StartTLS()
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	for _, c := range []struct {
		host, name string
		big, ok    bool
	}{{"allowed.test", "allowed.test", false, true}, {"ALLOWED.test.", "Allowed.Test", false, true}, {"allowed.test", "allowed.test", true, true}, {"127.0.0.1", "", false, true},
		{"allowed.test", "exfil.test", false, false}, {"allowed.test", "exfil.test", true, false}, {"allowed.test", "", false, false}, {"127.0.0.1", "exfil.test", false, false},
		{"b\u00fccher.test", "xn--bcher-kva.test", false, true}, {"XN--Bcher-kva.test", "allowed.test", false, false}} {
		p, at := named(t)
		config := &tls.Config{InsecureSkipVerify: true, ServerName: c.name}
		if c.big { // a hello of more than one segment
			for i := range 2000 {
				config.NextProtos = append(config.NextProtos, fmt.Sprintf("p%05d", i))
			}
			config.NextProtos = append(config.NextProtos, "http/1.1")
		}
		conn := tls.Client(tunnelTo(t, at, c.host+port), config)
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		err := conn.Handshake()
		if err == nil {
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			var b []byte
			if b, err = io.ReadAll(conn); err == nil && !strings.HasSuffix(string(b), "hello") {
				err = fmt.Errorf("came %q", b)
			}
		}
		conn.Close()
		list, _ := p.Close()
		if (err == nil) != c.ok || len(list) != 1 || (list[0].Refused == nil) != c.ok {
			t.Errorf("%+v: %v, %v", c, err, list)
			continue
		}
		if !c.ok && (!strings.Contains(Says(list[0]), "TLS handshake names") || !strings.Contains(Says(list[0]), c.name) || !strings.Contains(err.Error(), "access denied")) {
			t.Errorf("%+v: %q, %v", c, Says(list[0]), err)
		}
	}
	if saw["exfil.test"] != 0 {
		t.Errorf("the server saw %v", saw)
	}
}

// Plain HTTP names its host in a header, once a request.
func TestHostOfAnother(t *testing.T) {
	var mu sync.Mutex
	var saw []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		saw = append(saw, q.Host)
		io.WriteString(w, "hello")
	}))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	url := "http://allowed.test" + port + "/"
	tunnel := "allowed.test" + port
	for _, c := range []struct {
		name, tunnel, text string
		ok                 bool
	}{
		{"plain", "", "GET " + url + " HTTP/1.1\r\nHost: allowed.test" + port + "\r\n\r\n", true},
		{"spellings", "", "GET " + url + " HTTP/1.1\r\nHost: ALLOWED.TEST.\r\n\r\n", true},
		{"header", "", "GET " + url + " HTTP/1.1\r\nHost: exfil.test\r\n\r\n", false},
		{"folded", "", "GET " + url + " HTTP/1.1\r\nHost:\r\n exfil.test\r\n\r\n", false},
		{"two", "", "GET " + url + " HTTP/1.1\r\nHost: allowed.test\r\nHost: exfil.test\r\n\r\n", false},
		{"the second on a connection", "", "GET " + url + " HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET http://exfil.test" + port + "/ HTTP/1.1\r\nHost: exfil.test\r\n\r\n", true},
		{"in a tunnel", tunnel, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", true},
		{"header in a tunnel", tunnel, "GET / HTTP/1.1\r\nHost: exfil.test\r\n\r\n", false},
		{"empty lines first", tunnel, "\r\n\r\nGET / HTTP/1.1\r\nHost: exfil.test\r\n\r\n", false},
		{"a method of its own", tunnel, "xget / HTTP/1.1\r\nHost: exfil.test\r\n\r\n", false},
		{"URL in a tunnel", tunnel, "GET http://exfil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", false},
		{"the second in a tunnel", tunnel, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET / HTTP/1.1\r\nHost: exfil.test\r\n\r\n", true},
	} {
		p, at := named(t)
		var conn net.Conn
		if c.tunnel != "" {
			conn = tunnelTo(t, at, c.tunnel)
		} else {
			var err error
			if conn, err = net.Dial("tcp", at); err != nil {
				t.Fatal(err)
			}
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(conn, c.text)
		b, _ := io.ReadAll(conn)
		conn.Close()
		p.Close()
		if got := strings.Contains(string(b), "hello"); got != c.ok {
			t.Errorf("%s: %q", c.name, b)
		}
	}
	for _, h := range saw {
		if !strings.HasPrefix(h, "allowed.test:") {
			t.Errorf("the server saw the host %q", h)
		}
	}
}

// Protocols whose server speaks first, or that are no TLS, go through as they are.
func TestOtherProtocols(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "220 mail\r\n")
			line, _ := bufio.NewReader(conn).ReadString('\n')
			io.WriteString(conn, line)
			conn.Close()
		}
	}()
	for _, says := range []string{"EHLO me\r\n", "SSH-2.0-x\r\n", "\x00\x01 HTTP/1.1\n", "PING\n", "*1\r\n"} {
		p, at := named(t)
		conn := tunnelTo(t, at, "allowed.test"+l.Addr().String()[len("127.0.0.1"):])
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		io.ReadFull(conn, make([]byte, len("220 mail\r\n")))
		io.WriteString(conn, says)
		if b, _ := io.ReadAll(conn); string(b) != says {
			t.Errorf("%q came back as %q", says, b)
		}
		if list, _ := p.Close(); len(list) != 1 || list[0].Refused != nil {
			t.Errorf("%q: %v", says, list)
		}
	}
}

// Close ends what is open at both ends: a tunnel that nobody speaks in, and one
// in the middle of its handshake.
func TestCloseEndsTunnels(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, at := named(t)
	for _, begun := range []string{"", "\x16\x03\x01\x00", "GET / HT"} {
		conn := tunnelTo(t, at, "allowed.test"+l.Addr().String()[len("127.0.0.1"):])
		io.WriteString(conn, begun)
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for _, c := range []net.Conn{conn, server} {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			defer func() {
				if _, err := c.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
					t.Errorf("%q is still open: %v", begun, err)
				}
			}()
		}
	}
	p.Close()
}
