package e2e

import (
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// What a step leaves is collected by globs as it is after the step, and
// reports of tests are read.
func TestReports(t *testing.T) {
	b := newBed(t, allowAll, direct)
	b.write("out/old.xml", `<testsuite><testcase name="gone"/></testcase>`)
	s := b.step(contract.RunCommand, map[string]any{"cmd": `rm out/old.xml; mkdir -p out/sub
echo '<testsuite><testcase name="a"/><testcase name="b"><failure message="wanted 2"/></testcase></testsuite>' > out/sub/new.xml
echo log > out/x.log; printf '1..2\nok 1 - fine\nnot ok 2 - broken\n'; exit 1`})
	s.Expect = &v1.Expect{Artifacts: []string{"out/**/*.xml", "out/*.log", "nothing/*"}}
	r := b.want(b.submit(s), v1.Status_failed)
	if len(r.Artifacts) != 2 || r.Artifacts[0].Name != "out/sub/new.xml" || r.Artifacts[1].Name != "out/x.log" {
		t.Errorf("artifacts %v", r.Artifacts)
	}
	if len(r.Unmet) != 1 || r.Unmet[0] != "artifacts: nothing matches nothing/*" {
		t.Errorf("unmet %v", r.Unmet)
	}
	if len(r.Tests) != 2 || r.Tests[0].Format != "tap" || r.Tests[0].Failures[0].Name != "broken" ||
		r.Tests[1].Format != "junit" || r.Tests[1].Total != 2 || r.Tests[1].Failures[0].Message != "wanted 2" {
		t.Errorf("tests %v", r.Tests)
	}
}

// All changes are counted and judged, and the first thousand listed.
func TestManyChanges(t *testing.T) {
	b := newBed(t, allowAll, direct)
	b.write("list", strings.Repeat("x\n", 1500))
	r := b.want(b.sh("split -l 1 -a 4 -d list"), v1.Status_ok)
	if len(r.Changes.Changes) != 1000 || r.Changes.Total != 1500 {
		t.Errorf("%d of %d changes", len(r.Changes.Changes), r.Changes.Total)
	}
	r = b.want(b.do(contract.Restore, map[string]any{"all": true}), v1.Status_ok)
	if len(r.Changes.Changes) != 1000 || r.Changes.Total != 1500 {
		t.Errorf("undo: %d of %d changes", len(r.Changes.Changes), r.Changes.Total)
	}
}
