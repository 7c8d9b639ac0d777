package judge

import (
	"fmt"
	"strings"

	v1 "harness/contract/harness/v1"
)

// Failures is the names of the failing tests of a check, and what its reports
// say of them: from the executor's reading of them, else from the output.
func Failures(r *v1.StepResult) (names []string, summary string) {
	var b strings.Builder
	for _, t := range r.Tests {
		if t.Failed == 0 {
			continue
		}
		fmt.Fprintf(&b, "%d of %d tests failed (%s):\n", t.Failed, t.Total, t.Name)
		for _, f := range t.Failures {
			names = append(names, f.Name)
			if b.Len() < 8000 {
				fmt.Fprintf(&b, "- %s\n%s\n", f.Name, f.Message)
			}
		}
	}
	if len(names) == 0 {
		return Failing(r.GetOutput().GetText()), ""
	}
	return names, b.String()
}
