package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// BenchmarkTunnel downloads 1 GB over the loopback, straight and through a
// tunnel of the proxy by turns, and reports the ratio.
func BenchmarkTunnel(b *testing.B) {
	const size = 1 << 30
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	go func() {
		block := make([]byte, 1<<20)
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for range size / len(block) {
					if _, err := conn.Write(block); err != nil {
						return
					}
				}
			}()
		}
	}()
	_, at := serve(b, Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	read := func(conn net.Conn, from io.Reader) time.Duration {
		defer conn.Close()
		begin := time.Now()
		buf := make([]byte, 1<<20)
		var n int
		for {
			m, err := from.Read(buf)
			n += m
			if err != nil {
				break
			}
		}
		if n != size {
			b.Fatalf("%d bytes came", n)
		}
		return time.Since(begin)
	}
	var straight, tunnel time.Duration
	for b.Loop() {
		conn, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		straight += read(conn, conn)
		if conn, err = net.Dial("tcp", at); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\n\r\n", server.Addr())
		r := bufio.NewReaderSize(conn, 4096)
		if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			b.Fatalf("%q %v", line, err)
		}
		for {
			if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		tunnel += read(conn, r)
	}
	b.ReportMetric(float64(straight.Milliseconds())/float64(b.N), "straight-ms")
	b.ReportMetric(float64(tunnel.Milliseconds())/float64(b.N), "tunnel-ms")
	b.ReportMetric(float64(tunnel)/float64(straight), "ratio")
}
