package audit

import (
	"slices"
	"sort"

	"golang.org/x/mod/sumdb/tlog"
)

// locate says what is wrong with a log that is not clean. Each head that is
// whole and signed lists the lines before it, and so the log as it was written
// comes together again, but for the lines of a damaged head; the file is
// compared with it. It returns the log as it was, as far as it is known.
func (v *verification) locate(w *written) []tlog.Hash {
	was := v.recall(w)
	idx, present := was.places(w.leaves)
	anchors := ascending(idx)
	last, from := int64(-1), 0
	for _, a := range append(anchors, len(idx)) {
		next := int64(len(was.leaves))
		if a < len(idx) {
			next = idx[a]
		}
		var strange []int64
		for i := from; i < a; i++ {
			if n := idx[i]; n < 0 {
				strange = append(strange, int64(i))
			} else if present[n] > 1 {
				present[n]--
				v.report.find(n, "inserted", "line %d stands a second time, as line %d of the file", n, i)
			} else {
				v.report.find(n, "reordered", "line %d stands between lines %d and %d", n, last, next)
			}
		}
		strange = v.settle(w, was, present, last, next, strange)
		if a == len(idx) {
			return v.tail(w, was, strange)
		}
		for _, i := range strange {
			v.report.find(last+1, "inserted", "line %d of the file was never written; it stands behind line %d", i, last)
		}
		last, from = next, a+1
	}
	return nil
}

// recalled is the log as its heads list it.
type recalled struct {
	leaves []tlog.Hash
	known  []bool
	heads  []placed // those that vouch
}

func (v *verification) recall(w *written) *recalled {
	was := &recalled{}
	for _, h := range w.heads {
		from := h.tree.N - int64(len(h.leaves))
		if from < 0 || !v.vouches(h) {
			continue
		}
		if grow := int(h.tree.N) - len(was.leaves); grow > 0 {
			was.leaves, was.known = append(was.leaves, make([]tlog.Hash, grow)...), append(was.known, make([]bool, grow)...)
		}
		for i, leaf := range h.leaves {
			was.leaves[from+int64(i)], was.known[from+int64(i)] = leaf, true
		}
		was.heads = append(was.heads, h)
		v.report.Signed = max(v.report.Signed, h.tree.N)
	}
	slices.SortFunc(was.heads, func(a, b placed) int { return int(a.tree.N - b.tree.N) })
	if k := len(was.heads); k > 0 { // the newest head vouches for its own line
		was.leaves, was.known = append(was.leaves, w.leaves[was.heads[k-1].at]), append(was.known, true)
	}
	return was
}

// places is where each line of the file belongs, -1 where no head knows it, and
// how often each line of the log is in the file.
func (r *recalled) places(file []tlog.Hash) (idx []int64, present []int) {
	place := make(map[tlog.Hash]int64, len(r.leaves))
	for i, leaf := range r.leaves {
		if r.known[i] {
			place[leaf] = int64(i)
		}
	}
	idx, present = make([]int64, len(file)), make([]int, len(r.leaves))
	for i, leaf := range file {
		n, ok := place[leaf]
		if !ok {
			idx[i] = -1
			continue
		}
		idx[i] = n
		present[n]++
	}
	return idx, present
}

// ascending is the longest run of lines that stand in their order: what is not
// in it was moved.
func ascending(idx []int64) (run []int) {
	var ends []int // ends[k] is the last of the best run of k+1 lines
	before := make([]int, len(idx))
	for i, n := range idx {
		if n < 0 {
			continue
		}
		k := sort.Search(len(ends), func(k int) bool { return idx[ends[k]] >= n })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		run = append(run, i)
	}
	slices.Reverse(run)
	return run
}

// settle accounts for the lines that are missing between two lines of the log
// with the strange ones that stand there: first those that bear the number of
// one, then in their order. It returns the strange lines that are left.
func (v *verification) settle(w *written, was *recalled, present []int, last, next int64, strange []int64) []int64 {
	var missing []int64
	for n := last + 1; n < next; n++ {
		if present[n] > 0 {
			continue
		}
		if k := slices.IndexFunc(strange, func(i int64) bool { return w.claims[i] == n }); k >= 0 {
			v.stands(w, was, n, strange[k])
			strange = slices.Delete(strange, k, k+1)
			continue
		}
		missing = append(missing, n)
	}
	for _, n := range missing {
		if len(strange) > 0 && (next < int64(len(was.leaves)) || w.claims[strange[0]] < int64(len(was.leaves))) {
			v.stands(w, was, n, strange[0])
			strange = strange[1:]
			continue
		}
		v.report.find(n, "removed", "line %d is gone", n)
	}
	return strange
}

// stands takes a line of the file for line n of the log.
func (v *verification) stands(w *written, was *recalled, n, i int64) {
	if was.known[n] {
		v.report.find(n, "changed", "line %d is not what was written", n)
		return
	}
	was.leaves[n] = w.leaves[i] // its head is damaged; the next one's root says whether it is right
}

// tail checks what stands behind the newest head, and no head vouches for yet.
func (v *verification) tail(w *written, was *recalled, strange []int64) []tlog.Hash {
	v.roots(was)
	full := was.leaves
	for _, i := range strange {
		n := int64(len(full))
		head := slices.IndexFunc(w.heads, func(h placed) bool { return h.at == i })
		switch {
		case w.claims[i] != n:
			v.report.find(n, "changed", "where line %d should be, line %d of the file is another", n, i)
		case head >= 0 && !v.vouches(w.heads[head]):
			v.report.find(n, "changed", "line %d, a head, is not what was signed", n)
		}
		full = append(full, w.leaves[i])
	}
	return full
}

// roots holds the log, put together from lists and, where a head is damaged,
// from the file, against the root that each head signed.
func (v *verification) roots(was *recalled) {
	var t tree
	var good int64
	for _, h := range was.heads {
		for t.n < h.tree.N {
			t.add(was.leaves[t.n])
		}
		if t.root() != h.tree.Hash {
			v.report.find(good, "changed", "of lines %d to %d at least one is not what was written; their own head is damaged, so it cannot be said which", good, h.tree.N-1)
			return
		}
		good = h.tree.N
	}
}
