package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "harness/contract/harness/v1"
)

func serve(t testing.TB, c Config) (*Proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if c.Decide == nil {
		c.Decide = func(string) *v1.Decision { return &v1.Decision{Verdict: v1.Decision_allow} }
	}
	p := Serve(l, c)
	t.Cleanup(func() { p.Close() })
	return p, l.Addr().String()
}

func ask(t *testing.T, at, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, text)
	b, _ := io.ReadAll(conn)
	line, _, _ := strings.Cut(string(b), "\r\n")
	return line
}

// Every rule allows here: the address alone refuses.
func TestAddresses(t *testing.T) {
	resolved := "10.0.0.1" // of a name in other letters
	p, at := serve(t, Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(resolved)}, nil
	}})
	hosts := []string{"127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "127.0.0.1.", "[fe80::1%25lo]", "a..b", "ex\u00e4mple.test", "0"}
	for _, a := range []string{"10.0.0.1", "100.64.0.1", "169.254.169.254", "fd00:ec2::254", "192.168.1.1", "172.16.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "fe80::1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::1", "ff02::1", "::ffff:10.0.0.1"} {
		hosts = append(hosts, "="+a)
	}
	for _, h := range hosts {
		name := h
		if a, ok := strings.CutPrefix(h, "="); ok {
			name, resolved = "name.test", a
		}
		if got := ask(t, at, "CONNECT "+name+":443 HTTP/1.1\r\n\r\n"); !strings.Contains(got, " 403 ") && !strings.Contains(got, " 400 ") {
			t.Errorf("%s: %q", h, got)
		}
	}
	list, _ := p.Close()
	for _, c := range list {
		if c.Refused == nil || c.Address != "" {
			t.Errorf("connected: %v", c)
		}
	}
}

// A name that resolves to another address the second time is asked for once.
func TestRebinding(t *testing.T) {
	asked := 0
	p, at := serve(t, Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		asked++
		if asked == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := ask(t, at, fmt.Sprintf("CONNECT twice.test:%d HTTP/1.1\r\n\r\n", l.Addr().(*net.TCPAddr).Port)); !strings.Contains(got, " 502 ") {
		t.Errorf("%q", got)
	}
	if p.Close(); asked != 1 {
		t.Errorf("resolved %d times", asked)
	}
}

func TestHostile(t *testing.T) {
	before := runtime.NumGoroutine()
	p, at := serve(t, Config{Decide: func(h string) *v1.Decision { return &v1.Decision{Verdict: v1.Decision_deny, Reason: "no rule"} }})
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET http://u@a.test/ HTTP/1.1\r\n\r\n", "GET ftp://a.test/ HTTP/1.1\r\n\r\n",
		"GET http://a.test/ HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHeader)} {
		if got := ask(t, at, text); got != "" && !strings.Contains(got, " 400 ") {
			t.Errorf("%.40q: %q", text, got)
		}
	}
	for range 20 { // half a request, and then nothing
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "CONNECT a.te")
	}
	for range 300 {
		ask(t, at, "CONNECT a.test:443 HTTP/1.1\r\n\r\n")
	}
	list, total := p.Close()
	if len(list) != 300 || total != 300 {
		t.Errorf("%d listed of %d", len(list), total)
	}
	for range 100 { // those of the test itself may take a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
