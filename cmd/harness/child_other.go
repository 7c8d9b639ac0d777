//go:build !unix

package main

import (
	"errors"

	"harness/contract"
)

func startExecutor(string, policyFlags, ...string) (contract.Executor, func() error, error) {
	return nil, nil, errors.New("no executor runs on this system: use one on Linux, with --executor unix:PATH")
}
