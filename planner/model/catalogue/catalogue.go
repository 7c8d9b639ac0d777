// Package catalogue knows context sizes and prices of models, offline: a table
// of text, looked through for the one name that is asked for, because decoding
// the library's own catalogue costs more than the rest of a short run.
// After a new version of the library, go test -run TestTable -update writes it.
package catalogue

import (
	_ "embed"
	"strconv"
	"strings"

	"harness/planner/model"
)

// table has a line a model: provider/id, context, largest output, the prices of
// input, cached input, output, and of writing the cache, and whether it takes images.
//
//go:embed models.tsv
var table string

// Lookup is what is known of provider/model, zero where nothing is. A date at
// the end of a name may be there or not: claude-sonnet-4-5 is its last dated one.
func Lookup(name string) model.Info {
	for _, same := range []string{"openai-chat/", "azure/"} {
		if rest, ok := strings.CutPrefix(name, same); ok {
			name = "openai/" + rest
		}
	}
	if line, ok := find(name + "\t"); ok {
		return parse(line)
	}
	if base := undated(name); base != name {
		line, _ := find(base + "\t")
		return parse(line)
	}
	for rest := table; rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		id, _, _ := strings.Cut(line, "\t")
		if id != name && undated(id) == name {
			return parse(line)
		}
	}
	return model.Info{}
}

func find(start string) (line string, ok bool) {
	at := strings.Index("\n"+table, "\n"+start)
	if at < 0 {
		return "", false
	}
	line, _, _ = strings.Cut(table[at:], "\n")
	return line, true
}

// undated is a name without the -20250929 or -2025-09-29 at its end.
func undated(name string) string {
	for _, form := range []string{"-dddddddd", "-dddd-dd-dd"} {
		if n := len(name) - len(form); n > 0 && fits(name[n:], form) {
			return name[:n]
		}
	}
	return name
}

func fits(s, form string) bool {
	for i := range len(form) {
		if digit := s[i] >= '0' && s[i] <= '9'; digit != (form[i] == 'd') || !digit && s[i] != form[i] {
			return false
		}
	}
	return true
}

func parse(line string) model.Info {
	f := strings.Split(line, "\t")
	if len(f) != 8 {
		return model.Info{}
	}
	var n [7]float64
	for i := 1; i < 7; i++ {
		n[i], _ = strconv.ParseFloat(f[i], 64)
	}
	return model.Info{ContextWindow: int(n[1]), MaxOutput: int(n[2]), Input: n[3], CachedInput: n[4], Output: n[5], CacheWrite: n[6], TextOnly: f[7] == "text"}
}
