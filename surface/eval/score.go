package eval

import (
	"math"
	"strings"
)

// Group is what a model did under a policy, over all tasks and repeats.
type Group struct {
	Model    string         `json:"model"`
	Policy   string         `json:"policy"`
	Judged   int            `json:"judged"` // cells; those that could not be judged are not among them
	Resolved int            `json:"resolved"`
	Rate     float64        `json:"rate"` // Resolved of Judged
	Low      float64        `json:"low"`  // of the 95 % interval
	High     float64        `json:"high"`
	Errors   int            `json:"errors"`  // cells that could not be judged
	Classes  map[string]int `json:"classes"` // how those not resolved ended
	Total    Figures        `json:"total"`
}

// Groups sums up outcomes, in the order in which their models and policies come.
func Groups(outcomes []Outcome) []*Group {
	var list []*Group
	at := map[[2]string]*Group{}
	for _, o := range outcomes {
		key := [2]string{o.Model, o.Policy}
		g := at[key]
		if g == nil {
			g = &Group{Model: o.Model, Policy: o.Policy, Classes: map[string]int{}}
			at[key], list = g, append(list, g)
		}
		g.add(o)
	}
	for _, g := range list {
		if g.Judged > 0 {
			g.Rate = float64(g.Resolved) / float64(g.Judged)
		}
		g.Low, g.High = Wilson(g.Resolved, g.Judged)
	}
	return list
}

func (g *Group) add(o Outcome) {
	switch {
	case o.Class == Error:
		g.Errors++
	case o.Resolved:
		g.Judged, g.Resolved = g.Judged+1, g.Resolved+1
	default:
		g.Judged++
	}
	if !o.Resolved {
		g.Classes[o.Class]++
	}
	g.Total.Turns += o.Turns
	g.Total.Steps += o.Steps
	g.Total.Denied += o.Denied
	g.Total.Tokens += o.Tokens
	g.Total.CostUSD += o.CostUSD
	g.Total.Seconds += o.Seconds
}

// Wilson is the 95 % score interval of a rate, which holds for few cells and
// for none or all of them, too. Cells that repeat one task depend on each
// other: the true interval of those is wider.
func Wilson(resolved, judged int) (low, high float64) {
	if judged == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	n, p := float64(judged), float64(resolved)/float64(judged)
	mid := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	d := 1 + z*z/n
	return max(0, (mid-half)/d), min(1, (mid+half)/d)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}
