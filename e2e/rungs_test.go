package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// onRung, in the environment, makes the tests run on another rung than the best.
const onRung = "HARNESS_TEST_SANDBOX"

func rung() string {
	if r := os.Getenv(onRung); r != "" {
		return r
	}
	return "namespaces"
}

// The same contract, commands, edits and attacks hold on the rung below.
func TestOnLandlockAlone(t *testing.T) {
	if os.Getenv(onRung) != "" {
		t.Skip("this is it")
	}
	c := exec.Command("/proc/self/exe", "-test.v", "-test.run=^(TestConformance|TestShellCases|TestEditCases|TestUndoCases|TestAttacks|TestHostilePlannerWidens|TestHostilePlannerReplaysApprovals)$")
	c.Env = append(os.Environ(), onRung+"=landlock")
	out, err := c.CombinedOutput()
	if n := strings.Count(string(out), "\n--- PASS: Test"); err != nil || n < 7 {
		t.Fatalf("%d passed: %v\n%s", n, err, out)
	}
}
