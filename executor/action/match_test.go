package action

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "harness/contract/harness/v1"
)

// found is the lines that a matcher finds.
func found(t interface{ Fatal(...any) }, a *v1.SearchArgs, text string) (lines []string) {
	m, err := newMatcher(a)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		from, to := m.next([]byte(text), at)
		if from < 0 {
			return lines
		}
		lines = append(lines, text[from:to])
		at = to + 1
	}
}

// What is found is what each line by itself matches, however it is sped up.
func TestMatchesByLine(t *testing.T) {
	patterns := []string{`foo`, `fo+`, `^foo`, `foo$`, `^$`, ``, `\s`, `a\s*b`, `[^x]`, `\bfoo\b`, `(foo|bar)baz`, `(?i)FOO`, `x*`, `\Afoo`, `foo\z`, `(?s).*b`, `é+`, `[[:upper:]]\w+Error\b`, `a.b`, `(ab)+c`, `(?:ab){2,}`, `K`, `\n`, `a\nb`}
	rapid.Check(t, func(t *rapid.T) {
		a := &v1.SearchArgs{Pattern: rapid.SampledFrom(patterns).Draw(t, "pattern"), IgnoreCase: rapid.Bool().Draw(t, "ignore case"), Literal: rapid.Bool().Draw(t, "literal")}
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"foo", "bar", "baz", "ab", "c", "\n", "\n\n", " ", "x", "é", "É", "MyError", "K", "a", "b", "\u212a", ""})).Draw(t, "text"), "")
		expr := a.Pattern
		if a.Literal {
			expr = regexp.QuoteMeta(expr)
		}
		if a.IgnoreCase {
			expr = "(?i)" + expr
		}
		re := regexp.MustCompile("(?m)" + expr)
		var want []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); re.MatchString(line) {
				want = append(want, line)
			}
		}
		if got := found(t, a, text); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Fatalf("%q in %q: %q, want %q", expr, text, got, want)
		}
	})
}
