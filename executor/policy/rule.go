package policy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"harness/executor/policy/shell"
)

// verdict is ordered: the greater is the stricter.
type verdict int

const (
	none verdict = iota
	allow
	ask
	deny
)

func (v verdict) String() string { return [...]string{"none", "allow", "ask", "deny"}[v] }

// rule is one line of a list.
type rule struct {
	text, tool, spec string
	list             verdict
	source, reason   string
	any              bool     // the whole tool
	words            []string // Bash: the words that it names; nil: only the exact text
	prefix           bool     // Bash: more words may follow
	path             pattern  // Read, Edit
	host             string   // WebFetch: the domain
	match, notMatch  []string // examples
	parts            parts    // Bash, ask and deny: words, taken apart
	here             []string // built-in: a pattern of files that are run on this machine, by segments
}

var ruleForm = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*(?:__\*)?)(?s:\((.*)\))?$`)

// sameTool maps the names that users know to the ones that are judged.
var sameTool = map[string]string{
	"Bash": "Bash", "Shell": "Bash", "Read": "Read", "Grep": "Read", "Glob": "Read", "LS": "Read",
	"Edit": "Edit", "Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "WebFetch": "WebFetch", "WebSearch": "WebSearch",
}

func parseRule(text string, list verdict) (rule, error) {
	bad := func(format string, a ...any) (rule, error) {
		return rule{}, fmt.Errorf("the rule %q: %s", text, fmt.Sprintf(format, a...))
	}
	m := ruleForm.FindStringSubmatch(strings.TrimSpace(text))
	if t := strings.TrimSpace(text); m == nil && strings.Count(t, "(") > strings.Count(t, ")") {
		return bad("its bracket is not closed; was %s) meant?", t)
	}
	if m == nil {
		return bad("is not of the form Tool or Tool(spec), as Bash(git status:*) or Read(./secrets/**)")
	}
	r := rule{text: strings.TrimSpace(text), list: list, tool: sameTool[m[1]], spec: m[2]}
	if r.tool == "" {
		if strings.HasPrefix(m[1], "mcp__") {
			r.tool, r.any = strings.TrimSuffix(m[1], "__*"), true
			return r, nil
		}
		for known := range sameTool {
			if strings.EqualFold(known, m[1]) {
				return bad("there is no tool %q; %s was meant", m[1], known)
			}
		}
		return bad("there is no tool %q; there are Bash, Read, Edit, Write, WebFetch and mcp__server__tool%s", m[1], meant(m[1], slices.Sorted(maps.Keys(sameTool))))
	}
	if !strings.Contains(r.text, "(") || r.spec == "*" || r.spec == "**" && r.tool != "Bash" {
		r.any = true
		return r, nil
	}
	if strings.TrimSpace(r.spec) == "" {
		return bad("has nothing between its brackets; %s alone is every use of it", r.tool)
	}
	switch r.tool {
	case "Bash":
		if err := r.command(); err != nil {
			return bad("%v", err)
		}
	case "Read", "Edit":
		var err error
		if r.path, err = parsePattern(r.spec); err != nil {
			return bad("%v", err)
		}
	case "WebFetch":
		if err := r.domain(); err != nil {
			return bad("%v", err)
		}
	}
	return r, nil
}

// command reads the words of a Bash rule.
func (r *rule) command() error {
	spec := r.spec
	for _, end := range []string{":*", " *"} {
		if rest, ok := strings.CutSuffix(spec, end); ok {
			spec, r.prefix = rest, true
			break
		}
	}
	words, plain := plainWords(spec)
	if plain {
		r.words, r.parts = words, split(words)
	}
	switch {
	case r.prefix && !plain:
		return fmt.Errorf("before %q must stand plain words, as in Bash(npm run:*)", r.spec[len(spec):])
	case !plain && r.list != allow:
		return fmt.Errorf("it is no single plain command; name the program, as in Bash(rm:*)")
	case plain && strings.ContainsAny(words[0], "*?"):
		return fmt.Errorf("a * stands only at the end, as in Bash(%s:*)", strings.Trim(words[0], "*"))
	}
	return nil
}

// plainWords is the words of a text that is one simple command and nothing else.
func plainWords(text string) ([]string, bool) {
	s := shell.Analyse(text, shell.Env{Cwd: "/"})
	if s.Err != "" || len(s.Commands) == 0 {
		return nil, false
	}
	c := s.Commands[0]
	if len(c.Files) > 0 || len(c.Assigns) > 0 || len(c.Words) == 0 {
		return nil, false
	}
	if strings.TrimSpace(c.Text) != strings.TrimSpace(text) && len(s.Commands) > 1 || strings.ContainsAny(text, ";|&\n<>`") && !isOneCommand(s, text) {
		return nil, false
	}
	var words []string
	for _, w := range c.Words {
		if !w.Known || w.Glob {
			return nil, false
		}
		words = append(words, w.Text)
	}
	return words, true
}

func isOneCommand(s shell.Script, text string) bool {
	for _, c := range s.Commands {
		if strings.TrimSpace(c.Text) != strings.TrimSpace(text) {
			return false
		}
	}
	return true
}

// names: the rule, on the allow list, names the command.
func (r *rule) allows(c *command) bool {
	if r.any {
		return true
	}
	if r.words == nil || len(c.words) < len(r.words) || !r.prefix && len(c.words) != len(r.words) {
		return false
	}
	for i, w := range r.words {
		x := c.words[i]
		if !x.Known || x.Glob {
			return false
		}
		if x.Text != w && !(i == 0 && !strings.Contains(w, "/") && trusted(x.Text) && path.Base(x.Text) == w) {
			return false
		}
	}
	return true
}

// trusted: a program given by a path where the system keeps its own.
func trusted(name string) bool {
	switch path.Dir(path.Clean(name)) {
	case "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/go/bin":
		return path.IsAbs(name)
	}
	return false
}
