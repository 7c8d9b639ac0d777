//go:build !linux

package workspace

import (
	"io/fs"
	"os"
	"time"
)

// Only Linux has overlayfs, and so commands; file actions work everywhere.

func isWhiteout(fs.FileInfo) bool           { return false }
func isOpaque(string) bool                  { return false }
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
func inode(fs.FileInfo) uint64              { return 0 }
func links(fs.FileInfo) uint64              { return 1 }
func keepOwner(*os.File, fs.FileInfo) error { return nil }
