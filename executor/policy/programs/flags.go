package programs

import "strings"

// sameFlags says which flags of a program mean the same, so that a rule with
// one spelling covers the others.
var sameFlags = map[string]string{
	"rm":    "-R=-r --recursive=-r --force=-f --dir=-d --interactive=-i --verbose=-v",
	"cp":    "-R=-r --recursive=-r --force=-f --archive=-a",
	"mv":    "--force=-f",
	"chmod": "--recursive=-R", "chown": "--recursive=-R",
	"git": "--force=-f --delete=-d --all=-a --hard=--hard --message=-m --quiet=-q --no-verify=-n",
	"ln":  "--symbolic=-s --force=-f",
}

// SameFlag is the spelling that stands for a flag and its equals;
// abbreviations of long flags are understood.
func SameFlag(program, flag string) string {
	for pair := range strings.FieldsSeq(sameFlags[program]) {
		from, to, _ := strings.Cut(pair, "=")
		if from == flag || len(flag) > 2 && len(from) > 2 && strings.HasPrefix(flag, "--") && strings.HasPrefix(from, flag) {
			return to
		}
	}
	return flag
}
