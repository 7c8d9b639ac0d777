// Package bundle carries a session from one machine to another in one file: a
// tar of the planner's events and the executor's folder of the session, layers
// with their marks included, which ends with a list of the digests of all of
// it. Reading checks that list whole before anything is put in place, makes
// nothing outside of the folder that it is given, and follows no link.
//
// The digests find damage and a careless change, not a forger who writes the
// list anew: what a session did is proven by the executor's signed audit log,
// which is in the bundle.
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"harness/executor/workspace"
)

const (
	sums    = "sha256sums"
	hiding  = "HARNESS.hides" // a record of a folder that hides the one below
	mode    = 0o7777
	folder  = "executor/"
	maxText = 1 << 30
)

// Write writes a bundle: named texts, and all below dir but what skip names.
func Write(w io.Writer, texts map[string][]byte, dir string, skip func(rel string) bool) error {
	p := &packer{tw: tar.NewWriter(w)}
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := p.put(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(texts[name])), Typeflag: tar.TypeReg}, bytes.NewReader(texts[name])); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil || rel == "." {
			return err
		}
		rel = filepath.ToSlash(rel)
		if skip(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return p.file(at, folder+rel)
	})
	if err != nil {
		return err
	}
	list := p.list.Bytes()
	if err := p.put(&tar.Header{Name: sums, Mode: 0o600, Size: int64(len(list)), Typeflag: tar.TypeReg}, bytes.NewReader(list)); err != nil {
		return err
	}
	return p.tw.Close()
}

type packer struct {
	tw   *tar.Writer
	list bytes.Buffer
}

func (p *packer) file(at, name string) error {
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		if workspace.Hides(at) {
			h.PAXRecords = map[string]string{hiding: "y"}
		}
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(at); err != nil {
			return err
		}
	case workspace.IsDeletion(info):
		h.Typeflag = tar.TypeChar
	case info.Mode().IsRegular():
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		defer f.Close()
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		return p.put(h, io.LimitReader(f, h.Size))
	default:
		return nil // a socket or pipe: it means nothing elsewhere
	}
	return p.put(h, nil)
}

func (p *packer) put(h *tar.Header, content io.Reader) error {
	if h.ModTime.IsZero() {
		h.ModTime = time.Unix(0, 0)
	}
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	if content != nil {
		if _, err := io.Copy(io.MultiWriter(p.tw, sum), content); err != nil {
			return err
		}
	}
	fmt.Fprintln(&p.list, line(h, sum.Sum(nil)))
	return nil
}

// line is what the list says of an entry: content, kind, mode, target and name.
func line(h *tar.Header, sum []byte) string {
	return fmt.Sprintf("%s %c %o %d %q %q %q", hex.EncodeToString(sum), h.Typeflag, h.Mode&mode, h.ModTime.Unix(), h.PAXRecords[hiding], h.Linkname, h.Name)
}

var errDamaged = errors.New("the bundle is damaged or was changed")

// Read unpacks a bundle's folder into dir, which it makes, and gives its texts.
// After an error dir is not there.
func Read(r io.Reader, dir string) (texts map[string][]byte, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	u := &unpacker{dir: dir, texts: map[string][]byte{}, folders: map[string]bool{strings.TrimSuffix(folder, "/"): true}}
	if err = u.all(tar.NewReader(r)); err == nil {
		err = u.settle()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return u.texts, nil
}

type unpacker struct {
	dir     string
	texts   map[string][]byte
	folders map[string]bool
	modes   []*tar.Header
	list    bytes.Buffer
}

func (u *unpacker) all(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return fmt.Errorf("%w: its end is missing", errDamaged)
		}
		if err != nil {
			return fmt.Errorf("%w: %v", errDamaged, err)
		}
		if h.Name == sums {
			want, err := io.ReadAll(io.LimitReader(tr, maxText))
			if err != nil {
				return err
			}
			if !bytes.Equal(want, u.list.Bytes()) {
				return fmt.Errorf("%w: %s", errDamaged, firstOther(want, u.list.Bytes()))
			}
			return nil
		}
		sum := sha256.New()
		if err := u.entry(h, io.TeeReader(tr, sum)); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: it is cut", errDamaged)
			}
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		fmt.Fprintln(&u.list, line(h, sum.Sum(nil)))
	}
}

func firstOther(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " is " + b[i]
		}
	}
	return "entries are missing"
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) (err error) {
	rel, ok := strings.CutPrefix(h.Name, folder)
	if !ok {
		if h.Typeflag != tar.TypeReg || strings.Contains(h.Name, "/") {
			return errDamaged
		}
		u.texts[h.Name], err = io.ReadAll(io.LimitReader(content, maxText))
		return err
	}
	rel = strings.TrimSuffix(rel, "/")
	// Every folder must have come before as one: so no path leads through a link.
	if !filepath.IsLocal(filepath.FromSlash(rel)) || path.Clean(rel) != rel || !u.folders[path.Dir(folder+rel)] {
		return errDamaged
	}
	at := filepath.Join(u.dir, filepath.FromSlash(rel))
	switch h.Typeflag {
	case tar.TypeDir:
		u.folders[folder+rel] = true
		u.modes = append(u.modes, h)
		if err = os.Mkdir(at, 0o700); err == nil && h.PAXRecords[hiding] == "y" {
			err = workspace.MarkHiding(at)
		}
	case tar.TypeSymlink:
		err = os.Symlink(h.Linkname, at)
	case tar.TypeChar:
		err = workspace.MarkDeletion(at)
	case tar.TypeReg:
		var f *os.File
		if f, err = os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		err = errors.Join(err, f.Close(), os.Chmod(at, fs.FileMode(h.Mode).Perm()), os.Chtimes(at, time.Time{}, h.ModTime))
	default:
		return errDamaged
	}
	return err
}

// settle gives folders their mode, deep ones first.
func (u *unpacker) settle() error {
	for i := len(u.modes) - 1; i >= 0; i-- {
		h := u.modes[i]
		at := filepath.Join(u.dir, filepath.FromSlash(strings.TrimPrefix(h.Name, folder)))
		if err := errors.Join(os.Chtimes(at, time.Time{}, h.ModTime), os.Chmod(at, fs.FileMode(h.Mode).Perm())); err != nil {
			return err
		}
	}
	return nil
}
