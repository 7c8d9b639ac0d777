package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"harness/planner/session"
)

// askWhich stands for the ID that --resume was not given.
const askWhich = "?"

// choose has a person choose one of a folder's sessions. With nobody there, the
// list is the error.
func choose(store *session.Store, dir string) (string, error) {
	all, err := store.List()
	if err != nil {
		return "", err
	}
	var ids []string
	var list strings.Builder
	for _, m := range all {
		if m.Workspace == dir && len(ids) < 20 {
			ids = append(ids, m.ID)
			fmt.Fprintf(&list, "%3d  %s  %s  %s\n", len(ids), m.ID, m.Updated.Format("2006-01-02 15:04"), oneLine(m.Task))
		}
	}
	if len(ids) == 0 {
		return "", &exit{42, fmt.Errorf("there is no session of %s to go on with", dir)}
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return "", &exit{42, errors.New("--resume needs the ID of a session:\n" + strings.TrimRight(list.String(), "\n"))}
	}
	fmt.Fprint(os.Stderr, list.String(), "which one? ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	line = strings.TrimSpace(line)
	if n, nerr := strconv.Atoi(line); nerr == nil && n >= 1 && n <= len(ids) {
		return ids[n-1], nil
	}
	return "", &exit{42, errors.Join(fmt.Errorf("%q is none of the list", line), err)}
}
