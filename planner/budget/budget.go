// Package budget stops a run at its limits: turns, steps, time, tokens, money.
package budget

import (
	"fmt"
	"time"

	"harness/planner/model"
)

// Limits of one run; zero is no limit, but for MaxCheckRounds, which is 3.
type Limits struct {
	MaxTurns, MaxSteps int
	MaxTime            time.Duration
	MaxTokens          int
	MaxBudgetUSD       float64
	MaxCheckRounds     int // how often a red check goes back to the model
}

// Reason is why a run stopped.
type Reason string

const (
	TurnLimit   Reason = "turn_limit"
	StepLimit   Reason = "step_limit"
	TimeLimit   Reason = "time_limit"
	TokenLimit  Reason = "token_limit"
	BudgetLimit Reason = "budget_limit"
)

// Spent is what a run used so far.
type Spent struct {
	Turns, Steps int
	Usage        model.Usage
	CostUSD      float64
	Began        time.Time
}

// Add counts the usage of one request.
func (s *Spent) Add(u model.Usage, info model.Info) {
	s.Usage.InputTokens += u.InputTokens
	s.Usage.CachedInputTokens += u.CachedInputTokens
	s.Usage.CacheWriteTokens += u.CacheWriteTokens
	s.Usage.OutputTokens += u.OutputTokens
	s.Usage.ReasoningTokens += u.ReasoningTokens
	s.CostUSD += info.Cost(u)
}

// minReply is the smallest reply that is worth a request, in tokens.
const minReply = 256

// Reserve is how many tokens a reply may have so that a request of so many
// stays within the limits, at the highest price that it may have; 0 is any
// number. A reason says that there is no room for the request.
func (l Limits) Reserve(s Spent, input int, info model.Info) (most int, reason Reason, text string) {
	if l.MaxTokens > 0 {
		most = l.MaxTokens - s.Usage.InputTokens - s.Usage.OutputTokens - input
		if most < minReply {
			return 0, TokenLimit, fmt.Sprintf("%d of %d tokens are used, and the next request needs about %d", s.Usage.InputTokens+s.Usage.OutputTokens, l.MaxTokens, input+minReply)
		}
	}
	if l.MaxBudgetUSD > 0 && info.Output > 0 {
		first := float64(input) * max(info.Input, info.CacheWrite) / 1e6
		n := int((l.MaxBudgetUSD - s.CostUSD - first) * 1e6 / info.Output)
		if n < minReply {
			return 0, BudgetLimit, fmt.Sprintf("$%.4f of $%.4f are spent, and the next request may cost $%.4f", s.CostUSD, l.MaxBudgetUSD, first+minReply*info.Output/1e6)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	if info.MaxOutput > 0 && most > info.MaxOutput {
		most = 0
	}
	return most, "", ""
}

// parts is each limit with the share of it that is used.
func (l Limits) parts(s Spent) []struct {
	reason Reason
	share  float64
	text   string
} {
	type part = struct {
		reason Reason
		share  float64
		text   string
	}
	var list []part
	add := func(r Reason, used, limit float64, text string) {
		if limit > 0 {
			list = append(list, part{r, used / limit, text})
		}
	}
	add(TurnLimit, float64(s.Turns), float64(l.MaxTurns), fmt.Sprintf("%d of %d turns", s.Turns, l.MaxTurns))
	add(StepLimit, float64(s.Steps), float64(l.MaxSteps), fmt.Sprintf("%d of %d steps", s.Steps, l.MaxSteps))
	elapsed := time.Since(s.Began).Round(time.Second)
	add(TimeLimit, float64(time.Since(s.Began)), float64(l.MaxTime), fmt.Sprintf("%v of %v", elapsed, l.MaxTime))
	tokens := s.Usage.InputTokens + s.Usage.OutputTokens
	add(TokenLimit, float64(tokens), float64(l.MaxTokens), fmt.Sprintf("%d of %d tokens", tokens, l.MaxTokens))
	add(BudgetLimit, s.CostUSD, l.MaxBudgetUSD, fmt.Sprintf("$%.4f of $%.4f", s.CostUSD, l.MaxBudgetUSD))
	return list
}

// Struck is the limit that is reached, "" if none, and how much was used.
func (l Limits) Struck(s Spent) (Reason, string) {
	for _, p := range l.parts(s) {
		if p.share >= 1 {
			return p.reason, p.text
		}
	}
	return "", ""
}

// Near is the limits of which 80 % are used.
func (l Limits) Near(s Spent) map[Reason]string {
	near := map[Reason]string{}
	for _, p := range l.parts(s) {
		if p.share >= 0.8 {
			near[p.reason] = p.text
		}
	}
	return near
}
