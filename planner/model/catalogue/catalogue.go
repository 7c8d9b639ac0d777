// Package catalogue knows context sizes and prices of models, offline.
package catalogue

import (
	"strings"

	"charm.land/catwalk/pkg/embedded"

	"harness/planner/model"
)

// Lookup is what is known of provider/model, zero where nothing is.
func Lookup(name string) model.Info {
	provider, id, _ := strings.Cut(name, "/")
	provider = strings.TrimSuffix(provider, "-chat")
	for _, p := range embedded.GetAll() {
		if string(p.ID) != provider {
			continue
		}
		for _, m := range p.Models {
			if m.ID == id {
				info := model.Info{ContextWindow: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens),
					Input: m.CostPer1MIn, CachedInput: m.CostPer1MOutCached, Output: m.CostPer1MOut}
				if info.CachedInput == 0 {
					info.CachedInput = info.Input
				}
				return info
			}
		}
	}
	return model.Info{}
}
