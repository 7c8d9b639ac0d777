package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"harness/surface/terminal"
)

// Report is what came of a suite.
type Report struct {
	Suite   string    `json:"suite"`
	Missing int       `json:"missing"` // cells without an outcome
	Groups  []*Group  `json:"groups"`
	Cells   []Outcome `json:"cells"`
}

// NewReport sums up the outcomes of so many cells.
func NewReport(suite string, cells int, outcomes []Outcome) *Report {
	return &Report{Suite: suite, Missing: cells - len(outcomes), Groups: Groups(outcomes), Cells: outcomes}
}

// JSON writes it as an object.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Table writes it for people: a line for each model and policy, and one for each cell that was not resolved.
func (r *Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tPOLICY\tRESOLVED\tRATE\t95 %\tCOST\tSTEPS\tTIME\tDENIED\tFAILED")
	for _, g := range r.Groups {
		fmt.Fprintf(t, "%s\t%s\t%d of %d\t%.0f %%\t%.0f–%.0f %%\t$%.4f\t%d\t%s\t%d\t%s\n", terminal.Safe(g.Model), terminal.Safe(g.Policy), g.Resolved, g.Judged,
			100*g.Rate, 100*g.Low, 100*g.High, g.Total.CostUSD, g.Total.Steps, seconds(g.Total.Seconds), g.Total.Denied, classes(g.Classes))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, o := range r.Cells {
		if o.Resolved {
			continue
		}
		fmt.Fprintf(w, "%s: %s", terminal.Safe(o.Name()), o.Class)
		if why := o.Reason(); why != "" {
			fmt.Fprintf(w, ": %s", terminal.Safe(why))
		}
		fmt.Fprintln(w)
	}
	if r.Missing > 0 {
		fmt.Fprintf(w, "%d cells have no outcome yet\n", r.Missing)
	}
	return nil
}

// Name is the cell of the outcome.
func (o Outcome) Name() string {
	return Cell{Task: Task{Name: o.Task}, Model: o.Model, Policy: Policy{Name: o.Policy}, Repeat: o.Repeat}.String()
}

// Reason is one line on why it was not resolved.
func (o Outcome) Reason() string {
	switch n := len(o.Failing); {
	case n > 5:
		return fmt.Sprintf("%s and %d more", strings.Join(o.Failing[:5], ", "), n-5)
	case n > 0:
		return strings.Join(o.Failing, ", ")
	}
	return firstLine(o.Why)
}

func classes(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) string {
	if s < 100 {
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f min", s/60)
}
