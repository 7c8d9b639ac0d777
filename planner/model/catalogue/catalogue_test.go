package catalogue

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"harness/planner/model"
)

var update = flag.Bool("update", false, "write models.tsv anew")

// The table is the library's catalogue of the providers that there are clients for.
func TestTable(t *testing.T) {
	var lines []string
	for _, p := range embedded.GetAll() {
		if !slices.Contains([]string{"anthropic", "openai", "gemini", "openrouter"}, string(p.ID)) {
			continue
		}
		for _, m := range p.Models {
			lines = append(lines, fmt.Sprintf("%s/%s\t%d\t%d\t%.6g\t%.6g\t%.6g\t%.6g\t%s\n", p.ID, m.ID, m.ContextWindow, m.DefaultMaxTokens,
				m.CostPer1MIn, cached(m), m.CostPer1MOut, written(m), map[bool]string{true: "images", false: "text"}[m.SupportsImages]))
		}
	}
	want := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("models.tsv", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Error("models.tsv is not what the library knows; go test -run TestTable -update")
	}
}

// cached is the price of reading the cache. The library has it in one of two
// fields; the other one may be the price of writing, which is higher than input.
func cached(m catwalk.Model) float64 {
	for _, price := range []float64{m.CostPer1MOutCached, m.CostPer1MInCached} {
		if price > 0 && price < m.CostPer1MIn {
			return price
		}
	}
	return m.CostPer1MIn
}

// written is the price of writing the cache, 0 where that is the price of input.
func written(m catwalk.Model) float64 {
	if price := max(m.CostPer1MOutCached, m.CostPer1MInCached); price > m.CostPer1MIn {
		return price
	}
	return 0
}

func TestLookup(t *testing.T) {
	sonnet := model.Info{ContextWindow: 200_000, MaxOutput: 64_000, Input: 3, CachedInput: 0.3, Output: 15, CacheWrite: 3.75}
	gpt := model.Info{ContextWindow: 400_000, MaxOutput: 128_000, Input: 1.25, CachedInput: 0.125, Output: 10}
	for name, want := range map[string]model.Info{
		"anthropic/claude-sonnet-4-5-20250929": sonnet,
		"anthropic/claude-sonnet-4-5":          sonnet,
		"openai/gpt-5.1":                       gpt,
		"openai-chat/gpt-5.1":                  gpt,
		"openai/gpt-5.1-2025-11-13":            gpt,
		"openai/gpt-5.5":                       {ContextWindow: 1_050_000, MaxOutput: 128_000, Input: 5, CachedInput: 0.5, Output: 30},
		"openrouter/deepseek/deepseek-v3.2":    {ContextWindow: 163_840, MaxOutput: 32_768, Input: 0.269, CachedInput: 0.1345, Output: 0.4, TextOnly: true},
		"openai/gpt-5.":                        {},
		"anthropic/gpt-5.1":                    {},
		"anthropic/claude-sonnet":              {},
		"ollama/qwen":                          {},
		"":                                     {},
	} {
		if got := Lookup(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		Lookup("anthropic/claude-sonnet-4-5")
	}
}
