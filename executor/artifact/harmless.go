package artifact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Harmless is b as valid UTF-8 that cannot act on a screen: escape sequences
// (colours, titles, links, cursor moves) are taken out, other control and
// format characters and invalid bytes are shown as escapes, and a bare
// carriage return ends a line.
func Harmless(b []byte) string {
	var s strings.Builder
	s.Grow(len(b))
	for i := 0; i < len(b); {
		c := b[i]
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			s.WriteByte(c)
			i++
			continue
		}
		if c == 0x1b {
			if n := escapeLen(b[i:]); n > 1 {
				i += n
				continue
			}
		}
		if c == '\r' {
			if i+1 == len(b) || b[i+1] != '\n' {
				s.WriteByte('\n')
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&s, `\x%02x`, c)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&s, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&s, `\u%04x`, r)
		default:
			s.Write(b[i : i+n])
		}
		i += n
	}
	return s.String()
}

// acts says whether a character changes how others are shown, or cannot be
// seen: C1 controls, direction marks, and the like. Joiners stay: they are part
// of words and emoji.
func acts(r rune) bool {
	if r >= 0x80 && r < 0xa0 || r >= 0xe0000 && r < 0xe0080 {
		return true
	}
	return unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c' && r != '\u00ad' ||
		r == '\u2028' || r == '\u2029'
}

// escapeLen is the length of the escape sequence that b begins with (ECMA-48:
// CSI, OSC and other strings, two-byte forms); a cut one goes to the end of b.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch c := b[1]; {
	case c == '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if b[i] < 0x20 || b[i] > 0x7e {
				return i
			}
		}
		return len(b)
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X':
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == 0x07:
				return i + 1
			case b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\':
				return i + 2
			case b[i] == '\n':
				return i
			}
		}
		return len(b)
	case c >= 0x20 && c <= 0x2f:
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x30 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// trimPartial takes a character or escape sequence that is cut at b's end off.
func trimPartial(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// trimLeading takes the rest of a cut character off b's beginning.
func trimLeading(b []byte) []byte {
	for i := 0; i < min(utf8.UTFMax-1, len(b)); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// Stream makes an output harmless piece by piece: a character or a sequence
// that is cut at the end of one piece waits for the next.
type Stream struct{ rest []byte }

// maxSequence bounds how long a sequence without end is waited for.
const maxSequence = 4096

// Next is what can be shown of the bytes so far.
func (s *Stream) Next(b []byte) string {
	all := append(s.rest, b...)
	cut := len(trimPartial(all))
	for i := max(0, cut-maxSequence); i < cut; i++ {
		if all[i] == 0x1b && i+escapeLen(all[i:cut]) == cut && !ended(all[i:cut]) {
			cut = i
			break
		}
	}
	if cut > 0 && cut == len(all) && all[cut-1] == '\r' {
		cut--
	}
	s.rest = append([]byte{}, all[cut:]...)
	return Harmless(all[:cut])
}

// Piece is the harmless text of b, and how many bytes at its end are a cut
// character or sequence that is not in it.
func Piece(b []byte) (text string, rest int) {
	var s Stream
	text = s.Next(b)
	return text, len(s.rest)
}

// Rest is what was waited for in vain.
func (s *Stream) Rest() string {
	defer func() { s.rest = nil }()
	return Harmless(s.rest)
}

// ended says whether an escape sequence is whole: one more byte would not be part of it.
func ended(seq []byte) bool {
	return escapeLen(append(append([]byte{}, seq...), 'A')) == len(seq)
}
