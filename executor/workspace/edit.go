package workspace

import "io/fs"

// Op is what an Edit does.
type Op int

const (
	Write   Op = iota // Path becomes a file with Data
	Delete            // Path goes
	Move              // Path goes, To is what it was
	Mkdir             // Path becomes a folder
	Symlink           // Path becomes a link to To
)

// Edit is one change of a file action. Path is relative to the workspace's
// root, with slashes. Mode 0 on Write keeps an existing file's mode; a new file
// gets an ordinary one under the user's mask.
type Edit struct {
	Op       Op
	Path, To string
	Data     []byte
	Mode     fs.FileMode
}
