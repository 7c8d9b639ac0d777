package egress

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"strconv"
)

// SOCKS5, RFC 1928: CONNECT without authentication.
const (
	socksVersion = 5
	socksConnect = 1
	socksIPv4    = 1
	socksName    = 3
	socksIPv6    = 4

	socksDone        = 0
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksNoCommand   = 7
	socksNoAddress   = 8
)

func (p *Proxy) socks(c *client) {
	methods, err := c.take(2)
	if err == nil {
		methods, err = c.take(int(methods[1]))
	}
	if err != nil {
		return
	}
	if !bytes.Contains(methods, []byte{0}) {
		c.Write([]byte{socksVersion, 0xff})
		return
	}
	c.Write([]byte{socksVersion, 0})
	head, err := c.take(4)
	if err != nil {
		return
	}
	if head[1] != socksConnect {
		c.reply(socksNoCommand)
		return
	}
	host, ok := c.socksHost(head[3])
	port, err := c.take(2)
	if !ok || err != nil {
		c.reply(socksNoAddress)
		return
	}
	t := newTarget(host, strconv.Itoa(int(binary.BigEndian.Uint16(port))))
	up, r, err := p.connect("socks5", t)
	switch {
	case r.Refused != nil:
		c.reply(socksNotAllowed)
		return
	case err != nil:
		c.reply(socksUnreachable)
		return
	}
	defer p.drop(up)
	c.reply(socksDone)
	p.tunnel(c, up, t, r)
}

func (c *client) socksHost(kind byte) (string, bool) {
	size := map[byte]int{socksIPv4: 4, socksIPv6: 16}[kind]
	if kind == socksName {
		n, err := c.take(1)
		if err != nil {
			return "", false
		}
		name, err := c.take(int(n[0]))
		return string(name), err == nil
	}
	b, err := c.take(size)
	addr, ok := netip.AddrFromSlice(b)
	return addr.String(), err == nil && ok
}

func (c *client) take(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c.ahead, b)
	return b, err
}

func (c *client) reply(code byte) {
	c.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
}
