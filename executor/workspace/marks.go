package workspace

import "io/fs"

// What a layer says besides its files, for those who carry layers elsewhere.

// IsDeletion says whether a path of a layer marks a deletion.
func IsDeletion(info fs.FileInfo) bool { return whiteout(info) }

// MarkDeletion makes such a mark.
func MarkDeletion(path string) error { return makeWhiteout(path) }

// Hides says whether a folder of a layer hides the one below it.
func Hides(path string) bool { return opaque(path) }

// MarkHiding makes it hide that.
func MarkHiding(path string) error { return setOpaque(path) }
