package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "harness/contract/harness/v1"
)

// state is what a path is: enough to tell whether it changed. A nil state is
// an absent path.
type state struct {
	Type   v1.Change_Type `json:"type"`
	Mode   uint32         `json:"mode"` // permission, set-id and sticky bits as Unix has them
	Size   int64          `json:"size,omitempty"`
	Digest string         `json:"digest,omitempty"` // of a file, of a link's target, of a whole tree's metadata
	Ino    uint64         `json:"ino,omitempty"`
	MTime  int64          `json:"mtime,omitempty"`
	CTime  int64          `json:"ctime,omitempty"`
}

// look reads the state of a path without its digest.
func look(path string) (*state, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) || isNotDir(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s := &state{Type: typeOf(info.Mode()), Mode: unixMode(info.Mode()), MTime: info.ModTime().UnixNano()}
	s.Ino, s.CTime = identity(info)
	if s.Type != v1.Change_directory {
		s.Size = info.Size()
	}
	return s, info, nil
}

// fill adds the digest. Of a directory it is that of all below it.
func (s *state) fill(path string) (err error) {
	switch s.Type {
	case v1.Change_file:
		s.Digest, err = fileDigest(path)
	case v1.Change_symlink:
		var to string
		to, err = os.Readlink(path)
		s.Digest = to
	case v1.Change_directory:
		s.Digest, err = treeDigest(path, nil)
	}
	return err
}

// holds says whether path is still what s says, by identity or else by content.
func (s *state) holds(path string, whole bool) (ok bool, err error) {
	err = within(path, func() error {
		ok, err = s.matches(path, whole)
		return err
	})
	return ok, err
}

func (s *state) matches(path string, whole bool) (bool, error) {
	now, _, err := look(path)
	if err != nil || now == nil || s == nil {
		return now == nil && s == nil, err
	}
	if now.Type != s.Type || now.Mode != s.Mode {
		return false, nil
	}
	if s.Type == v1.Change_directory && !whole {
		return true, nil
	}
	if s.Type != v1.Change_directory && now.Ino == s.Ino && now.Size == s.Size && now.MTime == s.MTime && now.CTime == s.CTime {
		return true, nil
	}
	if s.Type == v1.Change_other {
		return now.Ino == s.Ino, nil
	}
	if now.Size != s.Size {
		return false, nil
	}
	if err := now.fill(path); err != nil {
		return false, err
	}
	return now.Digest == s.Digest, nil
}

func fileDigest(path string) (string, error) {
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// treeDigest covers names and identities of all below a directory, which a
// rename of the directory leaves as they are. each sees every path below.
func treeDigest(dir string, each func(rel string, info fs.FileInfo) error) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) && path != dir {
			return nil // a folder closed to us: itself it is in the digest
		}
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		ino, ctime := identity(info)
		fmt.Fprintf(h, "%q %o %d %d %d %d\n", rel, info.Mode(), info.Size(), ino, info.ModTime().UnixNano(), ctime)
		if each != nil {
			return each(filepath.ToSlash(rel), info)
		}
		return nil
	})
	return "tree:" + hex.EncodeToString(h.Sum(nil)), err
}

// sameFile compares two files byte for byte.
func sameFile(a, b string) (bool, error) {
	x, err := openFile(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := openFile(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	bx, by := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errx := io.ReadFull(x, bx)
		m, _ := io.ReadFull(y, by)
		if !bytes.Equal(bx[:n], by[:m]) {
			return false, nil
		}
		if errx == io.EOF || errx == io.ErrUnexpectedEOF {
			return true, nil
		}
		if errx != nil {
			return false, errx
		}
	}
}

func typeOf(m fs.FileMode) v1.Change_Type {
	switch {
	case m.IsRegular():
		return v1.Change_file
	case m.IsDir():
		return v1.Change_directory
	case m&fs.ModeSymlink != 0:
		return v1.Change_symlink
	}
	return v1.Change_other
}

func unixMode(m fs.FileMode) uint32 {
	u := uint32(m.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			u |= bit
		}
	}
	return u
}

func goMode(u uint32) fs.FileMode {
	m := fs.FileMode(u & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if u&bit != 0 {
			m |= flag
		}
	}
	return m
}
