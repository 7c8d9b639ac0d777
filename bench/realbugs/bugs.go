//go:build linux

package main

// bug is a fault of a published version that the next one no longer has, and
// what the next one's own tests say of it.
type bug struct {
	name         string // of its recording, too
	module       string
	buggy, fixed string
	tests        []string // of the fixed version; the judge's
	check        string
	statement    string
	changes      []string // the files that the fix touches
	leaves       string   // a folder that the tests themselves leave behind; undo has to take it back
	quick        bool     // small enough for every test run
}

var bugs = []bug{
	{
		name: "semver", module: "github.com/Masterminds/semver/v3", buggy: "v3.2.0", fixed: "v3.2.1",
		tests:     []string{"constraints_test.go"},
		check:     "go test -count=1 -run 'TestConstraintsCheck|TestRewriteRange|TestNewConstraint' .",
		statement: "A constraint such as \"1.0.0 - 2.0.0 <=2.0.0\" is refused or misread: a hyphen range cannot be followed by another constraint. Fix it.",
		changes:   []string{"constraints.go"}, quick: true,
	},
	{
		name: "mapstructure", module: "github.com/mitchellh/mapstructure", buggy: "v1.4.2", fixed: "v1.4.3",
		tests:     []string{"mapstructure_test.go", "mapstructure_bugs_test.go"},
		check:     "go test -count=1 .",
		statement: "Decoding a json.Number above 9223372036854775807 into a uint64 field fails, although it fits. Fix it.",
		changes:   []string{"mapstructure.go"},
	},
	{
		name: "shellwords", module: "github.com/mattn/go-shellwords", buggy: "v1.0.12", fixed: "v1.0.13",
		tests:     []string{"shellwords_security_test.go"},
		check:     "go test -count=1 .",
		statement: "With ParseBacktick, a closing parenthesis that closes nothing makes Parse panic or run what follows it. It should be an error.",
		changes:   []string{"shellwords.go"}, quick: true,
	},
	{
		name: "humanize", module: "github.com/dustin/go-humanize", buggy: "v1.0.0", fixed: "v1.0.1",
		tests:     []string{"ftoa_test.go", "si_test.go"},
		check:     "go test -count=1 -run 'Ftoa|Bug106' .",
		statement: "FtoaWithDigits(20, 0) gives \"2\" and SIWithDigits(200, 0, \"U\") gives \"2 U\". Whole numbers must keep their zeros.",
		changes:   []string{"ftoa.go"}, quick: true,
	},
	{
		name: "doublestar", module: "github.com/bmatcuk/doublestar/v4", buggy: "v4.6.0", fixed: "v4.6.1",
		tests:     []string{"doublestar_test.go"},
		check:     "go test -count=1 -run 'TestMatch|TestPathMatch' .", // the others fail as root
		statement: "The pattern a/** matches a, but a/**/ does not. It should.",
		changes:   []string{"match.go"}, leaves: "test",
	},
	{
		name: "cast", module: "github.com/spf13/cast", buggy: "v1.9.0", fixed: "v1.9.1",
		tests:     []string{"basic_test.go", "indirect_test.go", "time_test.go"},
		check:     "go test -count=1 -run 'TestIndirect|TestTime|TestDuration|TestBool|TestString' .",
		statement: "Casting a typed nil pointer, such as a nil *bool or *time.Time, is an error, and a pointer inside an interface is not followed. A nil pointer should cast as nil does.",
		changes:   []string{"indirect.go", "time.go"},
	},
}
