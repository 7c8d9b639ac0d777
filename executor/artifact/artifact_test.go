package artifact

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

func TestHarmless(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[2J\x1b]0;fake\x07ok\n", "ok\n"},
		{"\x1b]8;;http://exfil.test/\x07click\x1b]8;;\x07\n", "click\n"},
		{"\x1b]8;;http://exfil.test/\x1b\\click\x1b]8;;\x1b\\\n", "click\n"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"a\u202ecba\n", "a\\u202ecba\n"},
		{"a\x00b\xffc", `a\x00b\xffc`},
		{"10%\r20%\r\n", "10%\n20%\n"},
		{"\u732b", "\u732b"},
		{"\x9b2J", `\x9b2J`},
		{"\u009b2J", `\u009b2J`},
		{"\x1b(Bok", "ok"},
		{"x\x1b", "x\\x1b"},
		{"bell\x07", `bell\x07`},
		{"👩‍💻", "👩‍💻"},
	} {
		if got := Harmless([]byte(c.in)); got != c.want {
			t.Errorf("Harmless(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestHarmlessAlways(t *testing.T) {
	if err := quick.Check(func(b []byte) bool {
		s := Harmless(b)
		return utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\x07\x08\x1b\x7f\r")
	}, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// A text shown in pieces is the text shown at once, wherever it is cut.
func TestStreamAnyCut(t *testing.T) {
	text := []byte("a\x1b[31mr\u732bd\x1b[0m\x1b]0;t\x07b\r\nc\x1b(Bd\re👩")
	want := Harmless(text)
	for i := range text {
		for j := i; j <= len(text); j++ {
			var s Stream
			got := s.Next(text[:i]) + s.Next(text[i:j]) + s.Next(text[j:]) + s.Rest()
			if got != want {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, got, want)
			}
		}
	}
}

func TestOutputKeepsHeadTailAndWhole(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []int{1, 7, 64, 1000, 100000} {
		o := NewOutput(s, 100)
		whole := []byte("START" + strings.Repeat("0123456789", 3000) + "TAIL")
		for b := whole; len(b) > 0; {
			n := min(piece, len(b))
			o.Write(b[:n])
			b = b[n:]
		}
		out, err := o.Result()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.Text, "START0123") || !strings.HasSuffix(out.Text, "6789TAIL") ||
			!strings.Contains(out.Text, "29909 bytes left out") || out.OmittedBytes != 29909 {
			t.Errorf("pieces of %d: %q", piece, out.Text)
		}
		f, err := s.Get(out.Artifact)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := io.ReadAll(f)
		f.Close()
		if err != nil || !bytes.Equal(kept, whole) {
			t.Errorf("pieces of %d: kept %d bytes of %d, %v", piece, len(kept), len(whole), err)
		}
	}
}

func TestShortOutputIsWhole(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := NewOutput(s, 100)
	o.Write([]byte("hello\n"))
	out, err := o.Result()
	if err != nil || out.Text != "hello\n" || out.Artifact != "" || out.OmittedBytes != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestGetTakesOnlyDigests(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "sha256:", "../../etc/passwd", "sha256:../../../../etc/passwd", "sha256:" + strings.Repeat("0", 64)} {
		if f, err := s.Get(name); err == nil {
			f.Close()
			t.Errorf("Get(%q) opened %s", name, f.Name())
		}
	}
}
