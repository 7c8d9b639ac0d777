package action

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A file's encodings, as FileInfo names them.
const (
	utf8Text = "utf-8"
	utf8BOM  = "utf-8-bom"
	utf16LE  = "utf-16le"
	utf16BE  = "utf-16be"
	latin1   = "latin-1"
	binary   = "binary"
)

var bom = []byte("\ufeff")

// encodingOf tells an encoding from the beginning of a file.
func encodingOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, bom):
		return utf8BOM
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return utf16LE
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return utf16BE
	case bytes.IndexByte(head, 0) >= 0:
		return binary
	case utf8.Valid(trimmed(head)):
		return utf8Text
	}
	return latin1
}

// trimmed is head without a character that is cut at its end.
func trimmed(head []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if c := head[len(head)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-i:]) {
				return head[:len(head)-i]
			}
			break
		}
	}
	return head
}

// decode is a file's text for reading.
func decode(data []byte, encoding string) string {
	switch encoding {
	case utf8BOM:
		return string(data[len(bom):])
	case utf16LE, utf16BE:
		return decode16(data, encoding)
	}
	return string(data)
}

func decode16(data []byte, encoding string) string {
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		a, b := uint16(data[i]), uint16(data[i+1])
		if encoding == utf16BE {
			a, b = b, a
		}
		units = append(units, a|b<<8)
	}
	return string(utf16.Decode(units))
}

func encode16(text, encoding string) []byte {
	out := []byte{0xff, 0xfe}
	if encoding == utf16BE {
		out = []byte{0xfe, 0xff}
	}
	for _, u := range utf16.Encode([]rune(text)) {
		if encoding == utf16BE {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return out
}

// lineOf is the number of the line that the byte at offset is in.
func lineOf(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }
