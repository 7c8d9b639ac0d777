//go:build !linux

package workspace

import "io/fs"

const noFollow = 0

func (w *Workspace) hold(p string) (string, func(), error) { return w.at(p), func() {}, w.safe(p) }

func (w *Workspace) chmodFolder(p string, mode func(fs.FileMode) fs.FileMode) error {
	return w.chmodByName(p, mode)
}
