package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"
)

// What a file is to the gate.
const (
	one    = iota + 1 // the program that a rule names
	byName            // many programs, told apart by the name that it is called
	byWord            // many programs, told apart by that or by the first word
	loader            // runs the program in its words
)

// manyNames are files that are many programs: that one of them is denied does
// not deny the others.
var manyNames = map[string]int{"busybox": byWord, "toybox": byWord, "coreutils": byWord, "box": byWord,
	"systemctl": byName, "kmod": byName, "git": byName, "rustup": byName, "volta-shim": byName, "mise": byName, "snap": byName}

// loaders are the dynamic loaders of the C libraries, where programs name them.
var loaders = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux.so.2", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}

// knownFile is a file that the gate knows under whatever name.
type knownFile struct {
	file
	name, path string
	kind       int
	digest     func() string
}

type file struct {
	dev, ino uint64
	size     int64
}

// programDirs are where the system keeps programs, beside the user's PATH.
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func knownFiles(named map[string]bool) (list []*knownFile) {
	seen := map[string]bool{}
	add := func(name, at string, kind int) {
		if _, err := os.Lstat(at); err != nil {
			return
		}
		real, err := filepath.EvalSymlinks(at)
		if err != nil || seen[name+"\x00"+real] {
			return
		}
		seen[name+"\x00"+real] = true
		if many := manyNames[path.Base(real)]; many != 0 {
			kind = many
		}
		if id, ok := fileOf(real); ok && kind != byName {
			list = append(list, &knownFile{id, name, real, kind, sync.OnceValue(func() string { return digestOf(real) })})
		}
	}
	looked := map[string]bool{}
	for _, dir := range append(programDirs[:len(programDirs):len(programDirs)], filepath.SplitList(os.Getenv("PATH"))...) {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil || !path.IsAbs(dir) || looked[dir] {
			continue
		}
		looked[dir] = true
		for name, wanted := range named {
			if wanted {
				add(name, path.Join(dir, name), one)
			}
		}
		for name, kind := range manyNames {
			if kind == byWord {
				add(name, path.Join(dir, name), kind)
			}
		}
	}
	for _, l := range loaders {
		add(path.Base(l), l, loader)
	}
	return list
}

// identify finds the files that a program is, or is a copy of.
func (d *denials) identify(x *Program) (same []*knownFile, more bool) {
	for _, f := range d.files {
		switch {
		case f.size != x.Size:
		case f.dev == x.Dev && f.ino == x.Ino:
			same = append(same, f)
		case x.Digest == "":
			more = true
		case f.digest() == x.Digest:
			same = append(same, f)
		}
	}
	return same, more
}

func digestOf(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unreadable"
	}
	return hex.EncodeToString(h.Sum(nil))
}
