package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"
)

// config is the user's config.toml; the executor's policy reads [permissions] of it.
type config struct {
	Model         string  `toml:"model"`
	FallbackModel string  `toml:"fallback_model"`
	SmallModel    string  `toml:"small_model"`
	SystemPrompt  string  `toml:"system_prompt"` // a file
	Check         string  `toml:"check"`
	MaxTurns      int     `toml:"max_turns"`
	MaxTime       string  `toml:"max_time"`
	MaxBudgetUSD  float64 `toml:"max_budget_usd"`
	Permissions   any     `toml:"permissions"`
}

func loadConfig(file string) (config, error) {
	var c config
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, &exit{52, err}
	}
	err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&c)
	var strict *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		row, _ := strict.Errors[0].Position()
		err = fmt.Errorf("%s:%d: there is no setting %v", file, row, strict.Errors[0].Key())
	case errors.As(err, &decode):
		row, _ := decode.Position()
		err = fmt.Errorf("%s:%d: %v", file, row, decode)
	}
	if err != nil {
		return c, &exit{52, err}
	}
	return c, nil
}
