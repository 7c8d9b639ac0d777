// Package redact takes secrets out of a text before it reaches a log. A secret
// is replaced by its kind and a keyed digest: equal ones can be told equal, and
// nobody without the key can try guesses against it.
//
//	curl -H 'Authorization: Bearer [redacted authorization 5f2c09d1a4b7]'
//
// It knows secrets by their form and by the names that they are given; it is
// a net below what keeps secrets out of the sandbox, not a wall.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"reflect"
)

// Redactor replaces secrets under one key.
type Redactor struct{ key []byte }

// New makes a redactor. Under the same key a secret has the same digest.
func New(key []byte) *Redactor { return &Redactor{key: key} }

// Suspect says whether a text may hold a secret; it is much faster than Text.
func Suspect(text []byte) bool {
	lower := bytes.ToLower(text)
	for i := range rules {
		if bytes.Contains(lower, []byte(rules[i].hint)) {
			return true
		}
	}
	return false
}

// Text is a text without its secrets.
func (r *Redactor) Text(s string) string {
	text := []byte(s)
	lower := bytes.ToLower(text)
	for i := range rules {
		if bytes.Contains(lower, []byte(rules[i].hint)) {
			text = r.apply(&rules[i], text)
		}
	}
	return string(text)
}

// Value takes the secrets out of every text in a value: a pointer to a struct,
// with what it holds in further structs, lists and maps.
func (r *Redactor) Value(v any) { r.walk(reflect.ValueOf(v).Elem()) }

func (r *Redactor) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.Text(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.walk(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.walk(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			r.walk(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			r.walk(v.Elem())
		}
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		e := reflect.New(v.Elem().Type()).Elem()
		e.Set(v.Elem())
		r.walk(e)
		v.Set(e)
	}
}

func (r *Redactor) apply(rule *rule, text []byte) []byte {
	var out []byte
	last := 0
	for _, m := range rule.re().FindAllSubmatchIndex(text, -1) {
		from, to := m[len(m)-2], m[len(m)-1]
		secret := text[from:to]
		if entropy(secret) < rule.entropy || bytes.HasPrefix(text[max(0, from-len(mark)):], []byte(mark)) || bytes.Contains(secret, []byte(mark)) {
			continue
		}
		out = append(append(out, text[last:from]...), r.stand(rule.name, secret)...)
		last = to
	}
	if last == 0 {
		return text
	}
	return append(out, text[last:]...)
}

const mark = "[redacted "

// stand is what takes a secret's place.
func (r *Redactor) stand(name string, secret []byte) string {
	h := hmac.New(sha256.New, r.key)
	h.Write(secret)
	return mark + name + " " + hex.EncodeToString(h.Sum(nil)[:6]) + "]"
}

// entropy is how many bits a character carries, by how often each one occurs.
func entropy(b []byte) (bits float64) {
	var count [256]int
	for _, c := range b {
		count[c]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(b))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
