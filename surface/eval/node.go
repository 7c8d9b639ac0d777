package eval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// reader collects all that is wrong with a suite, each with file, line and field.
type reader struct {
	file string
	errs []error
}

// node is a value of the file, and where it stands.
type node struct {
	*yaml.Node
	r    *reader
	path string
}

func (n node) fail(format string, args ...any) {
	n.r.errs = append(n.r.errs, fmt.Errorf("%s:%d: %s: %s", n.r.file, n.Line, cmp.Or(n.path, "the suite"), fmt.Sprintf(format, args...)))
}

// wants complains where the value is of another kind.
func (n node) wants(kind yaml.Kind, what string) bool {
	if n.Node == nil {
		return false
	}
	if n.Kind == yaml.AliasNode {
		*n.Node = *n.Alias
	}
	if n.Kind != kind || kind == yaml.ScalarNode && n.Tag == "!!null" {
		n.fail("must be %s", what)
		return false
	}
	return true
}

// fields are the values of a mapping that has these keys and no others.
func (n node) fields(known ...string) map[string]node {
	m := map[string]node{}
	if !n.wants(yaml.MappingNode, "fields with values: "+strings.Join(known, ", ")) {
		return m
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := node{key, n.r, strings.TrimPrefix(n.path+"."+key.Value, ".")}
		switch _, twice := m[key.Value]; {
		case twice:
			at.fail("is there twice")
		case !slices.Contains(known, key.Value):
			at.fail("there is no such field; there are %s", strings.Join(known, ", "))
		default:
			m[key.Value] = node{n.Content[i+1], n.r, at.path}
		}
	}
	return m
}

func (n node) list() (items []node) {
	if n.Node == nil || !n.wants(yaml.SequenceNode, "a list") {
		return nil
	}
	for i, c := range n.Content {
		items = append(items, node{c, n.r, fmt.Sprintf("%s[%d]", n.path, i)})
	}
	return items
}

// text is "" where the field is not there.
func (n node) text() string {
	if !n.wants(yaml.ScalarNode, "a text") {
		return ""
	}
	return n.Value
}

// texts is a list of texts; one text is a list of one.
func (n node) texts() (list []string) {
	if n.Node != nil && n.Kind == yaml.ScalarNode {
		return []string{n.text()}
	}
	for _, i := range n.list() {
		if t := i.text(); t == "" {
			i.fail("is empty")
		} else {
			list = append(list, t)
		}
	}
	return list
}

// number is the default where the field is not there.
func (n node) number(standard, least int) int {
	if n.Node == nil {
		return standard
	}
	v, err := strconv.Atoi(n.text())
	if err != nil || v < least {
		n.fail("must be a whole number from %d, not %q", least, n.Value)
		return standard
	}
	return v
}

func (n node) amount() float64 {
	if n.Node == nil {
		return 0
	}
	v, err := strconv.ParseFloat(n.text(), 64)
	if err != nil || !(v > 0) {
		n.fail("must be an amount, as 1.5, not %q", n.Value)
	}
	return v
}

func (n node) time(standard time.Duration) time.Duration {
	if n.Node == nil {
		return standard
	}
	v, err := time.ParseDuration(n.text())
	if err != nil || v <= 0 {
		n.fail("must be a time, as 20m or 90s, not %q", n.Value)
	}
	return v
}

func (n node) yes(standard bool) bool {
	if n.Node == nil {
		return standard
	}
	if n.text() != "true" && n.Value != "false" {
		n.fail("must be true or false, not %q", n.Value)
	}
	return n.Value == "true"
}

func (r *reader) err() error { return errors.Join(r.errs...) }
