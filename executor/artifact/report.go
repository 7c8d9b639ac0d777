package artifact

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"

	v1 "harness/contract/harness/v1"
)

// Bounds of a report: a file that is read, failures that are listed, and the
// bytes of each one's message.
const (
	MaxReport   = 32 << 20
	maxFailures = 50
	maxMessage  = 2000
)

// formOf is what kind of report data begins like, "" for none.
func formOf(data []byte) string {
	head := bytes.TrimSpace(data[:min(len(data), reportHead)])
	switch {
	case bytes.HasPrefix(head, []byte("<")) && bytes.Contains(head, []byte("<testsuite")):
		return "junit"
	case bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"Action":"`)):
		return "go-test-json"
	case tapHead.Match(head):
		return "tap"
	}
	return ""
}

const reportHead = 4096

// ReadReport reads the report of a test run: JUnit XML, go test -json, or TAP,
// known by how it begins. It is nil where f is none of them.
func ReadReport(name string, f io.Reader) *v1.TestReport {
	head := make([]byte, reportHead)
	n, err := io.ReadFull(f, head)
	if n == 0 || formOf(head[:n]) == "" {
		return nil
	}
	data := head[:n]
	if err == nil {
		rest, err := io.ReadAll(io.LimitReader(f, MaxReport))
		if err != nil {
			return nil
		}
		data = append(data, rest...)
	}
	r := &v1.TestReport{Name: name, Format: formOf(data)}
	switch r.Format {
	case "junit":
		junit(r, data)
	case "go-test-json":
		goTest(r, data)
	case "tap":
		tap(r, data)
	}
	if r.Total == 0 && len(r.Failures) == 0 {
		return nil
	}
	return r
}

func count(r *v1.TestReport, name, state, message string) {
	r.Total++
	switch state {
	case "pass":
		r.Passed++
	case "skip":
		r.Skipped++
	default:
		r.Failed++
		if len(r.Failures) < maxFailures {
			message = strings.TrimSpace(message)
			if len(message) > maxMessage {
				message = message[:maxMessage/2] + "\n[…]\n" + message[len(message)-maxMessage/2:]
			}
			r.Failures = append(r.Failures, &v1.TestFailure{Name: Harmless([]byte(name)), Message: Harmless([]byte(message))})
		}
	}
}

// junit counts the cases at any depth; a report that is cut counts as far as it goes.
func junit(r *v1.TestReport, data []byte) {
	type outcome struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *outcome `xml:"failure"`
		Error   *outcome `xml:"error"`
		Skipped *outcome `xml:"skipped"`
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		t, err := d.Token()
		if err != nil {
			return
		}
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			continue
		}
		var c testcase
		if d.DecodeElement(&c, &start) != nil {
			return
		}
		name := c.Name
		if c.Class != "" {
			name = c.Class + "." + name
		}
		bad := c.Failure
		if bad == nil {
			bad = c.Error
		}
		switch {
		case bad != nil:
			message := bad.Message
			if text := strings.TrimSpace(bad.Text); !strings.HasPrefix(text, message) || message == "" {
				message += "\n" + text
			} else {
				message = text
			}
			count(r, name, "fail", message)
		case c.Skipped != nil:
			count(r, name, "skip", "")
		default:
			count(r, name, "pass", "")
		}
	}
}

// goTest counts tests and subtests, and packages that failed without one, as
// those that do not compile.
func goTest(r *v1.TestReport, data []byte) {
	output := map[string]*strings.Builder{}
	failed := map[string]bool{} // packages with a failing test
	for line := range bytes.Lines(data) {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		key := e.Package + e.ImportPath + "\x00" + e.Test
		switch e.Action {
		case "output", "build-output":
			if output[key] == nil {
				output[key] = &strings.Builder{}
			}
			if b := output[key]; b.Len() < 64<<10 {
				b.WriteString(e.Output)
			}
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		text := ""
		if b := output[key]; b != nil {
			text = b.String()
		}
		delete(output, key)
		switch {
		case e.Test != "":
			failed[e.Package] = failed[e.Package] || e.Action == "fail"
			count(r, e.Package+"."+e.Test, e.Action, text)
		case e.Action == "fail" && !failed[e.Package]:
			for k, b := range output {
				if strings.HasPrefix(k, e.Package+" [") || strings.HasPrefix(k, e.Package+"\x00") {
					text += b.String()
				}
			}
			count(r, e.Package, "fail", text)
		}
	}
}

var (
	tapHead = regexp.MustCompile(`(?m)^(TAP version \d+|1\.\.\d+)\s*$`)
	tapLine = regexp.MustCompile(`^\s*(not )?ok\b\s*(\d+)?\s*-?\s*([^#]*?)\s*(?:#\s*(?i:(skip|todo))\b.*)?$`)
)

// tap counts test points; those of subtests are in their parents'.
func tap(r *v1.TestReport, data []byte) {
	name, state, message := "", "", ""
	flush := func() {
		if state != "" {
			count(r, name, state, message)
		}
		state, message = "", ""
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		m := tapLine.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, " ") {
			if state == "fail" && line != "" {
				message += line + "\n"
			}
			continue
		}
		flush()
		name, state = m[3], "pass"
		if name == "" {
			name = "test " + m[2]
		}
		switch {
		case strings.EqualFold(m[4], "skip"), strings.EqualFold(m[4], "todo") && m[1] != "":
			state = "skip"
		case m[1] != "":
			state = "fail"
		}
	}
	flush()
}
