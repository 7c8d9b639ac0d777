// Package approval signs answers to held steps and checks them, so that an
// answer may come from another machine over a way that nobody vouches for.
//
// A key is made once (harness approvals key NAME); its public half goes, one a
// line, into the file approvers beside the policy of the machine that acts. A
// signature is a signed note (golang.org/x/mod/sumdb/note) over every field of
// the answer that counts.
package approval

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	v1 "harness/contract/harness/v1"
)

// NewKey makes a pair of keys for an approver, as lines of text.
func NewKey(name string) (private, public string, err error) {
	return note.GenerateKey(rand.Reader, name)
}

// text is what is signed. %q keeps fields apart.
func text(d *v1.DecideRequest) string {
	return fmt.Sprintf("harness/answer\n%q\n%q\n%q\n%s %s\n%q\n%q\n%s\n", d.SessionId, d.ApprovalId, d.Digest, d.Answer, d.Scope, d.Message, d.Surface,
		d.Time.AsTime().UTC().Format(time.RFC3339Nano))
}

// Sign puts a signature and the approver's name into an answer that has its time.
func Sign(d *v1.DecideRequest, private string) error {
	signer, err := note.NewSigner(strings.TrimSpace(private))
	if err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	if d.Time == nil {
		return errors.New("an answer needs its time before it is signed")
	}
	signed, err := note.Sign(&note.Note{Text: text(d)}, signer)
	if err != nil {
		return err
	}
	d.Approver, d.Signature = signer.Name(), strings.TrimPrefix(string(signed), text(d)+"\n")
	return nil
}

// Check says who signed an answer: one of those whose public keys are given.
func Check(d *v1.DecideRequest, public []string) (approver string, err error) {
	var known []note.Verifier
	for _, line := range public {
		v, err := note.NewVerifier(line)
		if err != nil {
			return "", fmt.Errorf("the approver %q: %w", line, err)
		}
		known = append(known, v)
	}
	n, err := note.Open([]byte(text(d)+"\n"+d.Signature), note.VerifierList(known...))
	if err != nil {
		return "", errors.New("it is not signed by anyone whom the approvers file names")
	}
	return n.Sigs[0].Name, nil
}

// Keys is the public keys in an approvers file: one a line, # begins a comment.
func Keys(file string) (keys []string) {
	for line := range strings.Lines(file) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, line)
		}
	}
	return keys
}
