package policy

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// codex reads calls of prefix_rule, the subset of Starlark that rule files are
// written in: texts, lists of them, comments. Format: the README of codex-execpolicy.
func (x *Imported) codex(file, text string) error {
	p := &starlark{text: text, line: 1}
	for p.space(); p.text != ""; p.space() {
		line := p.line
		name := p.name()
		if name == "" {
			return fmt.Errorf("%s:%d: prefix_rule(pattern = […], …) was meant here", file, line)
		}
		args, err := p.call()
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, p.line, err)
		}
		if name != "prefix_rule" {
			x.note(file, line, "left out: %s has no equal here", name)
			continue
		}
		if err := x.prefixRule(file, line, args); err != nil {
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	return nil
}

func (x *Imported) prefixRule(file string, line int, args map[string]any) error {
	pattern, ok := args["pattern"].([]any)
	if !ok || len(pattern) == 0 {
		return fmt.Errorf("prefix_rule needs pattern = [\"program\", …]")
	}
	decision, _ := args["decision"].(string)
	list, ok := map[string]verdict{"": allow, "allow": allow, "prompt": ask, "forbidden": deny}[decision]
	if !ok {
		return fmt.Errorf("unknown decision %q; there are allow, prompt and forbidden", decision)
	}
	commands := []string{""}
	for _, part := range pattern {
		words, ok := part.([]any)
		if !ok {
			words = []any{part}
		}
		var next []string
		for _, c := range commands {
			for _, w := range words {
				text, ok := w.(string)
				if !ok {
					return fmt.Errorf("pattern is a list of texts, or of lists of texts")
				}
				next = append(next, strings.TrimPrefix(c+" "+shellWord(text), " "))
			}
		}
		commands = next
	}
	var rules []rule
	for _, c := range commands {
		r, err := parseRule("Bash("+c+":*)", list)
		if err != nil {
			x.note(file, line, "left out: %v", err)
			continue
		}
		r.source = fmt.Sprintf("%s:%d", file, line)
		r.reason, _ = args["justification"].(string)
		rules = append(rules, r)
	}
	x.examples(file, line, rules, args)
	x.rules = append(x.rules, rules...)
	return nil
}

// examples gives each example to the rules that it is about: alternatives have
// become rules of their own.
func (x *Imported) examples(file string, line int, rules []rule, args map[string]any) {
	p := &Policy{root: "/", home: "/"}
	for _, key := range []string{"match", "not_match"} {
		list, _ := args[key].([]any)
		for _, e := range list {
			text, whole := e.(string)
			if words, ok := e.([]any); ok {
				var quoted []string
				for _, w := range words {
					s, _ := w.(string)
					quoted = append(quoted, shellWord(s))
				}
				text, whole = strings.Join(quoted, " "), true
			}
			held := key == "not_match"
			for i := range rules {
				switch hit := p.hits(&rules[i], text); {
				case key == "match" && hit:
					rules[i].match, held = append(rules[i].match, text), true
				case key == "not_match" && !hit:
					rules[i].notMatch = append(rules[i].notMatch, text)
				case key == "not_match":
					held = false
				}
			}
			if !held || !whole {
				x.note(file, line, "the example %q of %s does not hold here", text, key)
			}
		}
	}
}

func shellWord(s string) string {
	quoted, err := syntax.Quote(s, syntax.LangBash)
	if err != nil {
		return "''"
	}
	return quoted
}

// starlark reads the little of that language that rule files use.
type starlark struct {
	text string
	line int
}

func (p *starlark) take(n int) string {
	s := p.text[:n]
	p.line += strings.Count(s, "\n")
	p.text = p.text[n:]
	return s
}

func (p *starlark) space() {
	for {
		p.take(len(p.text) - len(strings.TrimLeft(p.text, " \t\r\n\\")))
		if !strings.HasPrefix(p.text, "#") {
			return
		}
		comment, _, _ := strings.Cut(p.text, "\n")
		p.take(len(comment))
	}
}

func (p *starlark) is(c string) bool {
	p.space()
	if !strings.HasPrefix(p.text, c) {
		return false
	}
	p.take(len(c))
	return true
}

func (p *starlark) name() string {
	p.space()
	n := 0
	for n < len(p.text) && (p.text[n] == '_' || p.text[n]|0x20 >= 'a' && p.text[n]|0x20 <= 'z') {
		n++
	}
	return p.take(n)
}

// call reads (key = value, …).
func (p *starlark) call() (map[string]any, error) {
	if !p.is("(") {
		return nil, fmt.Errorf("a ( was expected")
	}
	args := map[string]any{}
	for !p.is(")") {
		key := p.name()
		if key == "" || !p.is("=") {
			return nil, fmt.Errorf("key = value was expected")
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		args[key] = v
		if !p.is(",") {
			if !p.is(")") {
				return nil, fmt.Errorf("a , or ) was expected after %s", key)
			}
			break
		}
	}
	return args, nil
}

func (p *starlark) value() (any, error) {
	if !p.is("[") {
		return p.string()
	}
	list := []any{}
	for !p.is("]") {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !p.is(",") {
			if !p.is("]") {
				return nil, fmt.Errorf("a , or ] was expected in the list")
			}
			break
		}
	}
	return list, nil
}

func (p *starlark) string() (string, error) {
	p.space()
	if p.text == "" || p.text[0] != '"' && p.text[0] != '\'' {
		return "", fmt.Errorf("a text in quotes or a list was expected")
	}
	var b strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == p.text[0]:
			p.take(i + 1)
			return b.String(), nil
		case c == '\n':
			return "", fmt.Errorf("a text is not closed")
		case c == '\\' && i+1 < len(p.text):
			i++
			switch e := p.text[i]; e {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a text is not closed")
}
