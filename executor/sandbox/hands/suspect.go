package hands

import (
	"path"
	"slices"
	"strings"
)

// Suspects says of which programs the executor is to be asked. It is wider
// than any verdict, and saves the question for nearly all programs.
type Suspects struct {
	Names map[string]bool // base names
	Sizes []int64         // of files that are known under whatever name
	All   bool
}

func (s *Suspects) hold(p *Program) bool {
	if s == nil || s.All || slices.Contains(s.Sizes, p.Size) {
		return true
	}
	file := path.Base(p.Path)
	if s.Names[file] || s.Names[path.Base(p.Called)] || strings.HasPrefix(file, "ld-") {
		return true
	}
	for i, a := range p.Argv[:min(len(p.Argv), 2)] { // the second is the program of a busybox
		if a = path.Base(a); s.Names[a] || i == 0 && strings.HasPrefix(a, "git-") {
			return true
		}
	}
	return false
}
