//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"harness/contract"
	v1 "harness/contract/harness/v1"
)

// There is no overlayfs here: only staged edits make layers.

func whiteout(fs.FileInfo) bool { return false }
func opaque(string) bool        { return false }
func copiedUp(string) bool      { return false }
func makeWhiteout(string) error { return errors.ErrUnsupported }
func setOpaque(string) error    { return errors.ErrUnsupported }

func probeStack(string) error {
	return contract.Errorf(v1.Error_unsupported, "a staged session needs an executor on Linux")
}

func unmark(string) {}

func identity(info fs.FileInfo) (uint64, int64) { return 0, info.ModTime().UnixNano() }
func links(fs.FileInfo) uint64                  { return 1 }

func copyTimes(path string, info fs.FileInfo) {
	if info.Mode()&fs.ModeSymlink == 0 {
		os.Chtimes(path, info.ModTime(), info.ModTime())
	}
}

func makeSpecial(string, fs.FileInfo) error { return errors.ErrUnsupported }
func crossDevice(err error) bool            { return errors.Is(err, syscall.EXDEV) }
func isNotDir(err error) bool               { return errors.Is(err, syscall.ENOTDIR) }
