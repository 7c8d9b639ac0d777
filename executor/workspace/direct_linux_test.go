package workspace

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// All of the suite holds without an overlay too.
func TestWithoutOverlay(t *testing.T) {
	if inTree {
		t.Skip("this is it")
	}
	c := exec.Command("/proc/self/exe", "-test.v", "-test.run=^(TestUndoCases|TestModel|TestKills|TestClosedToTheirOwner|TestBranchAfterUndo|TestPersonElsewhere|TestNothingChanged|TestDiff|TestOtherFilesystem)$")
	c.Env = append(os.Environ(), "WORKSPACE_DIRECT=1")
	out, err := c.CombinedOutput()
	if n := strings.Count(string(out), "--- PASS: Test"); err != nil || n < 9 {
		t.Fatalf("%d passed: %v\n%s", n, err, out)
	}
}
