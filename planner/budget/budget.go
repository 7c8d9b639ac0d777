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

// Add counts one reply.
func (s *Spent) Add(u model.Usage, info model.Info) {
	s.Turns++
	s.Usage.InputTokens += u.InputTokens
	s.Usage.CachedInputTokens += u.CachedInputTokens
	s.Usage.OutputTokens += u.OutputTokens
	s.CostUSD += info.Cost(u)
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
