// Package notes reads what a repository tells agents: AGENTS.md and its kin,
// from the root of the repository down. It is data for the model and grants nothing.
package notes

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// names are the files that are looked for in each folder; the first one counts.
var names = []string{"AGENTS.override.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"}

// Max bounds the joined text.
const Max = 32 << 10

// Read joins the notes of some folders, in their order, the outermost first.
// read fails for a file that is not there. What the cap cuts off is said in cut.
func Read(ctx context.Context, folders []string, read func(context.Context, string) (string, error)) (text, cut string) {
	var b strings.Builder
	for _, folder := range folders {
		for _, name := range names {
			t, err := read(ctx, path.Join(folder, name))
			if err != nil {
				continue
			}
			fmt.Fprintf(&b, "From %s:\n%s\n\n", path.Join(folder, name), strings.TrimSpace(t))
			break
		}
	}
	text = b.String()
	if len(text) > Max {
		cut = fmt.Sprintf("the notes of the repository have %d bytes; the first %d were given to the model", len(text), Max)
		text = strings.ToValidUTF8(text[:Max], "") + "\n[cut here]"
	}
	return text, cut
}
