package programs

var build = Program{Builds: true}

const goRuns = "-exec -toolexec -vettool -overlay -modfile"

var goBuild = Program{Builds: true, Single: true, Runs: goRuns, Dirs: "-C", Values: "-run -bench -count -timeout -tags -ldflags -gcflags -p -parallel -cpu -coverprofile -cpuprofile -memprofile -o -mod -f -fuzz -fuzztime -benchtime -covermode -coverpkg"}

// scripts are the entries of package.json that a project's checks go by.
const scripts = "test tests test:unit test:ci test:integration build lint lint:fix typecheck type-check check format:check tsc unit"

var nodeRun = map[string]Program{
	"test": build, "t": build, "tst": build, "run": {Builds: true, Only: scripts}, "run-script": {Builds: true, Only: scripts},
	"ls": {Reads: true}, "list": {Reads: true}, "--version": {Reads: true}, "-v": {Reads: true}, "why": {Reads: true}, "root": {Reads: true}, "prefix": {Reads: true},
}

var shortRun = map[string]Program{
	"test": build, "build": build, "lint": build, "check": build, "typecheck": build, "run": {Builds: true, Only: scripts}, "list": {Reads: true}, "why": {Reads: true},
}

// builds are a project's own build and test commands. They run the project's
// code, which the sandbox holds; here it is said that running them is expected.
var builds = map[string]Program{
	"go": {Subs: map[string]Program{
		"build": goBuild, "test": goBuild, "vet": goBuild, "list": goBuild, "fmt": {Builds: true, Single: true}, "install": {}, "version": {Reads: true}, "env": {Reads: true, Writes: "-w -u", Single: true}, "doc": {Reads: true}, "help": {Reads: true},
		"mod":  {Subs: map[string]Program{"graph": {Reads: true}, "why": {Reads: true}, "verify": {Reads: true}}},
		"tool": {Subs: map[string]Program{"cover": {Builds: true, Single: true}}}}},
	"gofmt": {Reads: true, Single: true, Writes: "-w -cpuprofile"}, "goimports": {Reads: true, Single: true, Writes: "-w"}, "staticcheck": build, "golangci-lint": {Subs: map[string]Program{"run": build, "version": {Reads: true}}}, "gotestsum": build,
	"cargo": {Values: "--color -Z --config", Dirs: "-C", Runs: "--config", Subs: map[string]Program{"build": build, "b": build, "test": build, "t": build, "check": build, "c": build, "clippy": build, "fmt": build, "doc": build, "bench": build, "nextest": build, "tree": {Reads: true}, "metadata": {Reads: true}, "--version": {Reads: true}}},
	"npm":   {Subs: nodeRun, Dirs: "--prefix", Values: "-w --workspace"}, "pnpm": {Subs: merge(nodeRun, shortRun), Dirs: "-C --dir", Values: "--filter -F"}, "yarn": {Subs: merge(nodeRun, shortRun), Dirs: "--cwd"}, "bun": {Subs: map[string]Program{"test": build, "run": {Builds: true, Only: scripts}}},
	"make": {Builds: true, Only: "test tests check build all lint vet", Runs: "-n --just-print --dry-run --recon -f --file --makefile -I --include-dir --eval -E -o -W", Dirs: "-C --directory", Values: "-j -l --jobs"},
	"just": {Builds: true, Only: "test check build lint all", Runs: "-f --justfile --shell"}, "ninja": {Builds: true, Dirs: "-C", Values: "-j -f", Runs: "-f"}, "ctest": {Builds: true, Dirs: "--test-dir", Values: "-R -E -j -L"}, "meson": {Subs: map[string]Program{"test": build, "compile": build}},
	"pytest": build, "py.test": build, "tox": build, "nox": build, "unittest": build, "mypy": build, "pyright": build, "flake8": build, "pylint": build, "black": build, "isort": build,
	"ruff":   {Subs: map[string]Program{"check": build, "format": build, "--version": {Reads: true}}},
	"python": {Subs: pythonModules, Values: "-W -X"}, "python3": {Subs: pythonModules, Values: "-W -X"},
	"tsc": build, "eslint": {Builds: true, Runs: "--rulesdir --resolve-plugins-relative-to -c --config"}, "prettier": build, "jest": build, "vitest": build, "mocha": build, "ava": build, "biome": {Subs: map[string]Program{"check": build, "lint": build, "format": build}},
	"mvn": {Builds: true, Only: "test verify compile package test-compile validate", Runs: "-f --file -s --settings -gs"}, "mvnw": {Builds: true, Only: "test verify compile package"},
	"gradle": {Builds: true, Only: "test check build assemble compileJava compileKotlin", Runs: "-I --init-script -b --build-file -c"}, "gradlew": {Builds: true, Only: "test check build assemble"},
	"dotnet": {Subs: map[string]Program{"build": build, "test": build}}, "mix": {Subs: map[string]Program{"test": build, "compile": build}}, "rspec": build, "rake": {Builds: true, Only: "test spec"}, "phpunit": build, "swift": {Subs: map[string]Program{"build": build, "test": build}}, "zig": {Subs: map[string]Program{"build": build, "test": build}},
	"node": {Subs: map[string]Program{"": {}}}, "rustc": {}, "javac": {}, "gcc": {}, "clang": {},
}

// pythonModules are what "python -m NAME" may be: the words are -m, NAME.
var pythonModules = map[string]Program{
	"-m pytest": build, "-m unittest": build, "-m mypy": build, "-m ruff": build, "-m flake8": build, "-m pyflakes": build, "-m compileall": build, "-m py_compile": build, "--version": {Reads: true}, "-V": {Reads: true},
}
