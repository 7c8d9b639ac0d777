package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"harness/contract/picture"
	"harness/planner"
)

// images are the files of --image: those of the workspace are read by the
// executor, under its policy; others, which the user named, are read here.
func images(workspace string, files []string) ([]planner.Image, error) {
	if len(files) > planner.MaxImages {
		return nil, &exit{2, fmt.Errorf("%d images; a task may come with %d", len(files), planner.MaxImages)}
	}
	var list []planner.Image
	for _, file := range files {
		folder, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err == nil {
			folder, err = filepath.Abs(folder)
		}
		if err != nil {
			return nil, &exit{42, err}
		}
		path := filepath.Join(folder, filepath.Base(file))
		if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsLocal(rel) {
			list = append(list, planner.Image{Path: rel})
			continue
		}
		data, err := head(path, picture.MaxFile+1)
		if err != nil {
			return nil, &exit{42, err}
		}
		list = append(list, planner.Image{Path: filepath.Base(path), Data: data})
	}
	return list, nil
}

// head is up to n bytes of a file.
func head(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}
