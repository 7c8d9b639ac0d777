// Package e2e tests the whole program, and the house that it lives in.
package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// packages is the real import graph of the module, tests left out.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "harness/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// below says whether a package is one of the rooms or inside one.
func below(path string, rooms ...string) bool {
	for _, r := range rooms {
		if path == r || strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

// What a room may not reach, through any number of imports.
var walls = []struct {
	room   string
	closed []string
	why    string
}{
	{"harness/executor", []string{"harness/planner", "harness/surface", "harness/transport", "github.com/anthropics", "github.com/openai", "google.golang.org/genai", "charm.land"},
		"the side that acts has no model"},
	{"harness/planner", []string{"harness/executor", "harness/surface", "harness/transport", "os/exec"},
		"the side that thinks has no hands"},
	{"harness/transport", []string{"harness/planner", "harness/executor", "harness/surface"}, "transports know the contract only"},
	{"harness/surface", []string{"harness/executor", "harness/transport", "harness/planner/model", "os/exec"}, "surfaces know the session API only"},
}

func TestDoors(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if below(p.ImportPath, "harness/contract") {
			seen["harness/contract"] = true
			for _, dep := range p.Deps {
				if below(dep, "harness") && !below(dep, "harness/contract") {
					t.Errorf("%s reaches %s: the contract imports nothing of ours", p.ImportPath, dep)
				}
			}
		}
		for _, w := range walls {
			if !below(p.ImportPath, w.room) {
				continue
			}
			seen[w.room] = true
			for _, dep := range p.Deps {
				if below(dep, w.closed...) {
					t.Errorf("%s reaches %s: %s", p.ImportPath, dep, w.why)
				}
			}
		}
	}
	for _, w := range walls {
		if !seen[w.room] {
			t.Errorf("no package of %s was found", w.room)
		}
	}
}
