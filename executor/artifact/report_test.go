package artifact

import (
	"bytes"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, data             string
		format                 string
		total, failed, skipped uint32
		failure, message       string
	}{
		{"junit", `<?xml version="1.0"?><testsuites><testsuite name="a" tests="3"><testcase classname="t.A" name="one"/>
<testcase classname="t.A" name="two"><failure message="assert 1 == 2">t.py:3: AssertionError</failure></testcase>
<testcase classname="t.A" name="three"><skipped/></testcase><testsuite><testcase name="deep"><error>boom</error></testcase></testsuite></testsuite></testsuites>`,
			"junit", 4, 2, 1, "t.A.two", "assert 1 == 2\nt.py:3: AssertionError"},
		{"junit cut", `<testsuite><testcase name="a"/><testcase name="b"><failure>x</failure></testcase><testcase name="c`, "junit", 2, 1, 0, "b", "x"},
		{"go", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: got 3\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}`, "go-test-json", 3, 1, 1, "p.TestA", "a_test.go:7: got 3"},
		{"go build", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"./p.go:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, "go-test-json", 1, 1, 0, "p", "undefined: x"},
		{"tap", "TAP version 14\n1..4\nok 1 - first\nnot ok 2 - second\n  ---\n  message: wanted 1\n  ...\nok 3 # SKIP no network\nnot ok 4 later # TODO\n", "tap", 4, 1, 2, "second", "wanted 1"},
		{"no report", "hello\nok then\n", "", 0, 0, 0, "", ""},
		{"JSON", `{"a":1}`, "", 0, 0, 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ReadReport("x", strings.NewReader(c.data))
			if c.format == "" {
				if r != nil {
					t.Fatal(r)
				}
				return
			}
			if r == nil || r.Format != c.format || r.Total != c.total || r.Failed != c.failed || r.Skipped != c.skipped || r.Passed != c.total-c.failed-c.skipped {
				t.Fatal(r)
			}
			if f := r.Failures[0]; f.Name != c.failure || !strings.Contains(f.Message, c.message) {
				t.Errorf("%q: %q", f.Name, f.Message)
			}
		})
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte("<testsuite><testcase><failure/></testcase>"))
	f.Add([]byte("1..1\nnot ok"))
	f.Add([]byte(`{"Action":"fail","Package":"p"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r := ReadReport("x", bytes.NewReader(data)); r != nil && r.Total != r.Passed+r.Failed+r.Skipped {
			t.Error(r)
		}
	})
}
