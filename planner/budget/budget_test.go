package budget

import (
	"testing"

	"harness/planner/model"
)

// Each kind of token has its own price.
func TestCost(t *testing.T) {
	info := model.Info{Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15}
	u := model.Usage{InputTokens: 1_000_000, CachedInputTokens: 500_000, CacheWriteTokens: 200_000, OutputTokens: 100_000, ReasoningTokens: 60_000}
	if got, want := info.Cost(u), 0.3*3+0.5*0.3+0.2*3.75+0.1*15; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("$%v, want $%v", got, want)
	}
	info.CacheWrite = 0 // no price of its own
	if got, want := info.Cost(u), 0.5*3+0.5*0.3+0.1*15; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("$%v, want $%v", got, want)
	}
}

// What is reserved keeps a request and its reply within the limits, at the
// highest price they may have.
func TestReserve(t *testing.T) {
	info := model.Info{Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15, MaxOutput: 64_000}
	used := Spent{Usage: model.Usage{InputTokens: 8000, OutputTokens: 1000}, CostUSD: 0.9}
	for _, c := range []struct {
		name   string
		limits Limits
		input  int
		most   int
		reason Reason
	}{
		{"no limit", Limits{}, 10_000, 0, ""},
		{"tokens bind", Limits{MaxTokens: 20_000}, 10_000, 1000, ""},
		{"no room for tokens", Limits{MaxTokens: 20_000}, 10_900, 0, TokenLimit},
		{"money binds", Limits{MaxBudgetUSD: 1}, 10_000, 4166, ""},
		{"no room for money", Limits{MaxBudgetUSD: 1}, 27_000, 0, BudgetLimit},
		{"the smaller one", Limits{MaxBudgetUSD: 1, MaxTokens: 20_000}, 10_000, 1000, ""},
		{"far away", Limits{MaxBudgetUSD: 100}, 10_000, 0, ""},
	} {
		most, reason, text := c.limits.Reserve(used, c.input, info)
		if most != c.most || reason != c.reason || (text == "") != (reason == "") {
			t.Errorf("%s: %d %q %q", c.name, most, reason, text)
		}
		if most > 0 && c.limits.MaxBudgetUSD > 0 {
			worst := used.CostUSD + info.Cost(model.Usage{InputTokens: c.input, CacheWriteTokens: c.input, OutputTokens: most})
			if worst > c.limits.MaxBudgetUSD {
				t.Errorf("%s: it may come to $%v", c.name, worst)
			}
		}
	}
}

func TestNear(t *testing.T) {
	l := Limits{MaxTurns: 10, MaxSteps: 10, MaxTokens: 1000, MaxBudgetUSD: 1}
	s := Spent{Turns: 8, Steps: 7, Usage: model.Usage{InputTokens: 700, OutputTokens: 100}, CostUSD: 0.79}
	near := l.Near(s)
	if len(near) != 2 || near[TurnLimit] == "" || near[TokenLimit] == "" {
		t.Errorf("%v", near)
	}
	s.CostUSD = 1
	if reason, _ := l.Struck(s); reason != BudgetLimit {
		t.Errorf("%s", reason)
	}
}
