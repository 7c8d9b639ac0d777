package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkHidden is what one step costs with a rule that may match anywhere,
// in a tree of 2,000 folders with ten files each that nobody changed.
func BenchmarkHidden(b *testing.B) {
	root := b.TempDir()
	for i := range 2000 {
		dir := filepath.Join(root, fmt.Sprint(i%50), fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, rule := range map[string]string{"anywhere": "Read(.env)", "one folder": "Read(./secrets/**)"} {
		b.Run(name, func(b *testing.B) {
			p := load(b, Options{Deny: []string{rule}, Workspace: root, Home: "/home/somebody"})
			for b.Loop() {
				if _, err := p.Hidden(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
