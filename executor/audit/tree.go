package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// tree is the right edge of a Merkle tree: all that is needed to add leaves and
// to know the root. Bit i of n says whether edge[i], the root of a whole
// subtree of 2^i leaves, is in use.
type tree struct {
	n    int64
	edge [48]tlog.Hash
}

func (t *tree) add(leaf tlog.Hash) {
	i := 0
	for ; t.n>>i&1 == 1; i++ {
		leaf = tlog.NodeHash(t.edge[i], leaf)
	}
	t.edge[i] = leaf
	t.n++
}

// root is the tree's hash as RFC 6962 has it; for no leaves, as tlog does, zero.
func (t *tree) root() (h tlog.Hash) {
	found := false
	for i := range t.edge {
		switch {
		case t.n>>i == 0:
			return h
		case t.n>>i&1 == 0:
		case !found:
			h, found = t.edge[i], true
		default:
			h = tlog.NodeHash(t.edge[i], h)
		}
	}
	return h
}

// head is a head line, taken apart.
type head struct {
	note   string
	tree   tlog.Tree
	leaves []tlog.Hash // of the lines from the head before on, itself included
}

const originPrefix = "harness/audit/"

func origin(session string) string { return originPrefix + session }

// SessionOf is the session whose log a head is of, "" if it is no head.
func SessionOf(head string) string {
	from, _, ok := parseNote(head)
	id, ours := strings.CutPrefix(from, originPrefix)
	if !ok || !ours {
		return ""
	}
	return id
}

// headText is a checkpoint as transparency logs write them: origin, size, root;
// and, as an extension line, the digest of the head's leaves, so that each head
// vouches for its own lines even where those before it are damaged.
func headText(origin string, n int64, root tlog.Hash, leaves []tlog.Hash) string {
	return fmt.Sprintf("%s\n%d\n%s\n%s\n", origin, n, root, leavesDigest(leaves))
}

func leavesDigest(leaves []tlog.Hash) string {
	h := sha256.New()
	for _, l := range leaves {
		h.Write(l[:])
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// headPrefix is how a head line begins, and no record does.
const headPrefix = `{"head":`

type headJSON struct {
	Head   string `json:"head"`
	Leaves []byte `json:"leaves"` // the hashes, end to end
}

func headLine(note string, leaves []tlog.Hash) []byte {
	h := headJSON{Head: note}
	for _, l := range leaves {
		h.Leaves = append(h.Leaves, l[:]...)
	}
	line, _ := json.Marshal(h) // strings and bytes always marshal
	return line
}

func parseHead(line []byte) (h head, ok bool) {
	if !bytes.HasPrefix(line, []byte(headPrefix)) {
		return h, false
	}
	var j headJSON
	if json.Unmarshal(line, &j) != nil || len(j.Leaves)%tlog.HashSize != 0 {
		return h, false
	}
	h.note = j.Head
	for b := j.Leaves; len(b) > 0; b = b[tlog.HashSize:] {
		h.leaves = append(h.leaves, tlog.Hash(b[:tlog.HashSize]))
	}
	_, h.tree, ok = parseNote(j.Head)
	return h, ok
}

// parseNote is the origin and the tree that a head speaks of, its signature unchecked.
func parseNote(text string) (origin string, t tlog.Tree, ok bool) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 {
		return "", t, false
	}
	if _, err := fmt.Sscanf(lines[1], "%d", &t.N); err != nil || t.N < 0 {
		return "", t, false
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return "", t, false
	}
	t.Hash = tlog.Hash(root)
	return lines[0], t, true
}
