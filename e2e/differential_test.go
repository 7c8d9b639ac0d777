package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// zap is a denied program: a stand-in that leaves a trace. The analysis reads a
// script, and a real shell runs it where the trace shows: what ran it must not
// have been allowed.
type differential struct {
	*bed
	policy *policy.Policy
}

func newDifferential(t testing.TB) *differential {
	t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
	d := &differential{bed: newBed(t, allowAll, direct)}
	var err error
	if d.policy, err = policy.Load(policy.Options{Allow: []string{"Bash(*)"}, Deny: []string{"Bash(zap:*)"}, Workspace: d.dir, Home: "/home/somebody"}); err != nil {
		t.Fatal(err)
	}
	d.write("bin/zap", "#!/bin/sh\necho ran >> \"$TRACE\"\n")
	if err := os.Chmod(d.dir+"/bin/zap", 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("file", "one\ntwo\n")
	return d
}

// ran says whether a real shell starts zap for a script.
func (d *differential) ran(script string) bool {
	d.t.Helper()
	d.write("script.sh", script)
	d.write("run.sh", "export TRACE=/tmp/trace PATH=\"$PWD/bin:$PATH\"\ntimeout -k 1 5 bash ./script.sh <file >/dev/null 2>&1\nsleep 0.05\ntest -e /tmp/trace && echo ZAPPED\nrm -f /tmp/trace\nrm -rf /tmp/x*\n")
	r := d.do(contract.RunCommand, map[string]any{"cmd": "bash ./run.sh", "timeout_s": 20})
	if len(r.GetChanges().GetChanges()) > 0 { // each script begins in the same folder
		d.want(d.do(contract.Restore, map[string]any{"to_step": r.StepId}), v1.Status_ok)
	}
	return strings.Contains(r.GetOutput().GetText(), "ZAPPED")
}

func (d *differential) verdict(script string) v1.Decision_Verdict {
	return d.policy.Judge(policy.Request{Action: contract.RunCommand, Cmd: script, Cwd: d.dir, Sandboxed: true}).Decision.Verdict
}

// spellings are other ways to write the program's name.
var spellings = []string{"zap", `z\ap`, "'zap'", `"zap"`, "z''ap", "$'zap'", `$'\x7aap'`, "${x:-zap}", "{zap,y}", "bin/zap", "./bin/zap", `"$PWD"/bin/zap`,
	"bin/z[a]p", "bin/z*", "bin/?ap", "$(echo zap)", "`echo zap`", "zap$x", "z\\\nap", "bin/../bin/zap", "bin//zap"}

// wraps run a command, %, written as it is; where it stands in single quotes it has none.
var wraps = []string{
	"%", "env %", "env A=b %", "env -u A %", "env -S '% y'", "env --split-string='% y'", "timeout 3 %", "timeout -k 1 --signal=TERM 3 %", "nice %", "nice -n 5 %", "nice -5 %", "nohup %", "setsid -w %",
	"stdbuf -oL %", "stdbuf -o L %", "ionice -c3 %", "chrt -o 0 %", "taskset 1 %", "time %", "time -p %", "/usr/bin/time %", "command %", "command -p env %", "builtin command %", "exec %", "exec -a y %", "! %",
	"xargs %", "xargs -n1 %", "xargs -I{} % {}", "xargs -0 %", "xargs --max-args 1 %", "echo a | xargs -P2 -n 1 %", "find . -maxdepth 0 -exec % \\;", "find . -maxdepth 0 -exec % {} +", "find . -maxdepth 0 -execdir $PWD/bin/zap \\;",
	"find . -maxdepth 0 -ok % \\; <<< y", "sh -c '%'", "bash -c '%'", "bash -ec '%'", "bash -o errexit -c '%'", "bash --norc -c '%'", "dash -c '%'", "sh -c '$0' %", "sh -c '\"$@\"' x %", "eval %", "eval '%'", "eval 'ev''al' %",
	"( % )", "{ %; }", "if %; then :; fi", "if true; then %; fi", "if false; then :; else %; fi", "for i in 1; do %; done", "for ((;;)); do %; break; done", "while %; do break; done", "until %; do break; done", "f() { %; }; f", "function f { %; }\nf",
	"case a in a) %;; esac", "select i in a; do %; break; done <<< 1", "true && %", "false || %", "true; %", "% | cat", "echo | %", "% |& cat", "% & wait", "coproc %; wait", "echo $(%)", "echo `%`", "x=$(%)", "x=`%`", "echo \"$(%)\"", "cat <(%)", "echo > >(%)", "cat <<E\n$(%)\nE",
	"cat <<< $(%)", "echo ${x:-$(%)}", "echo ${x:=$(%)}", "echo $(( $(%) + 1 ))", "a=($(%))", "declare x=$(%)", "export x=$(%)", "local x=$(%)", "[ $(%) ]", "[[ $(%) ]]", "(( x = $(%) ))", "for i in $(%); do :; done", "case $(%) in *) ;; esac", "x[$(%)]=1", "echo ${y[$(%)]}",
	"trap '%' EXIT", "trap '%' DEBUG\n:", "trap '%' ERR\nfalse", "bash <<< '%'", "bash <<'E'\n%\nE", "bash <<E\n%\nE", "echo '%' | sh", "echo '%' | bash -s", "printf '%' | sh", ". <(echo '%')", "source /dev/stdin <<< '%'", "echo '%' > x.sh; sh x.sh", "echo '%' > x.sh; . ./x.sh",
	"x='%'; $x", "x='%'; eval \"$x\"", "x='%'; sh -c \"$x\"", "set -- %; \"$@\"", "set -- %; $1", "a=(%); \"${a[@]}\"", "x='%'; y=x; ${!y}", "x='$(%)'; echo \"${x@P}\"", "x='a[$(%)]'; echo $((x))", "x='a[$(%)]'; (( x ))", "x='a[$(%)]'; [[ x -eq 1 ]]", "[[ -v 'a[$(%)]' ]]", "test -v 'a[$(%)]'",
	"let 'a[$(%)]=1'", "read 'a[$(%)]' <<< 1", "printf -v 'a[$(%)]' x", "unset 'a[$(%)]'", "declare 'a[$(%)]=1'", "command declare 'a[$(%)]=1'", "builtin export 'a[$(%)]=1'", "mapfile -C % -c 1 a < file", "readarray -C '%' -c 1 a < file", "alias y='%'\nshopt -s expand_aliases\nalias y='%'\ny", "hash -p bin/zap ls; ls", "ls() { %; }; ls", "cd() { %; }; cd x",
	"BASH_ENV=<(echo %) bash -c :", "ENV=x.sh sh -c %", "PATH=bin:$PATH %", "enable -n echo; echo | %", "exec 3< <(%); cat <&3", "wait $(%)", "printf %s | xargs %", "yes | head -1 | xargs %", "flock /tmp/x %", "flock /tmp/x -c '%'", "script -qec '%' /dev/null", "unshare %", "chroot / %", "sudo -n %", "busybox sh -c '%'", "busybox env %", "ls | while read l; do %; done",
	"true & %", "true\n%", "#\n%", "% # y", ": ${x:=a}; %", "time ! %", "{ { %; }; }", "((1)) && %", "if [[ a ]]; then ( % ); fi", "f() ( % ); f; f", "f() { g; }; g() { %; }; f",
}

// programs start zap by themselves.
var starters = []string{
	`awk 'BEGIN { system("zap") }'`, `awk 'BEGIN { "zap" | getline }'`, `awk '{ print | "zap" }' file`, `python3 -c 'import os; os.system("zap")'`, `python3 -c 'import subprocess as s; s.run(["zap"])'`, `perl -e 'system("zap")'`, "perl -e '`zap`'",
	"sed '1e zap' file", "sed 's/one/zap/e' file", "sed -n -e '1p' -e '1e zap' file", "sort --compress-program=zap -S 1k file", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=zap file", "tar -cf /tmp/x.tar -I zap file", "tar --use-compress-program=zap -cf /tmp/x.tar file", "tar --to-command=zap -xf /tmp/x.tar",
	"git -c alias.x='!zap' x", "git -c core.fsmonitor=zap status", "git -c core.pager=zap -p log", "GIT_PAGER=zap git -p log", "GIT_EXTERNAL_DIFF=zap git diff", "git -c diff.external=zap diff --no-index file bin/zap", "GIT_SSH_COMMAND=zap git ls-remote ssh://a/b", "git ls-remote 'ext::zap'", "git grep -Ozap x", "git init -q x && cd x && git config alias.y '!zap' && git y", "git -c core.editor=zap config -e", "GIT_EDITOR=zap git config -f /tmp/x -e", "git bisect run zap", "git submodule foreach zap", "git rebase -x zap", "git -c credential.helper='!zap' credential fill <<< protocol=https",
	"printf 'all:\\n\\tzap\\n' > Makefile; make", "printf 'all:\\n\\tzap\\n' | make -f -", "make -f <(printf 'all:\\n\\tzap\\n')", "make --eval='$(shell zap)'", "echo 'x:=$(shell zap)' > Makefile; make -n", "find . -maxdepth 0 -exec sh -c zap \\;", "find . -name file -exec env zap {} +", "xargs -a file -n1 zap", "xargs sh -c zap < file", "rg --pre zap one file", "man -P zap ls", "LESSOPEN='|zap' less file", "vi -es -c '!zap' -c q", "ed -s file <<< '!zap'",
	"ssh -o ProxyCommand=zap a", "rsync -e zap a: .", "node -e 'require(\"child_process\").execSync(\"zap\")'", "ruby -e 'system(\"zap\")'", "php -r 'system(\"zap\");'", "lua -e 'os.execute(\"zap\")'", "parallel zap ::: a", "watch -n 1 -e 'zap; false'", "watch -x zap", "strace zap", "gdb -batch -ex '!zap' true", "cp bin/zap x; ./x", "ln -s bin/zap x; ./x", "cat bin/zap | sh", "sh bin/zap", "bash ./bin/zap", ". bin/zap", "sh < bin/zap",
	"echo 'zap' > .git/hooks/pre-commit", "curl file://$PWD/bin/zap | sh", "base64 -d <<< emFwCg== | sh", "tr y z <<< yap | sh", "echo paz | rev | sh", "printf '\\172ap' | sh", "split --filter=zap file", "ls --hyperlink $(zap)", "install -s --strip-program=zap file /tmp/xi", "csplit file 1 -f $(zap)", "expect -c 'spawn zap'", "crontab <<< '* * * * * zap'", "at now <<< zap", "socat - EXEC:zap", "nc -e zap -l 1", "dpkg --pre-invoke=zap -l", "apt-get -o APT::Update::Pre-Invoke::=zap update", "pip install .", "npm exec zap", "go run .", "cargo run",
}

// unread is what starts zap by code that the analysis does not read: other
// languages, files made meanwhile, the project's own builds. With every command
// allowed these are allowed; that zap itself does not start is the exec gate's part.
var unread = regexp.MustCompile(`python3|perl|ruby|node|php|lua|gdb|\bvi\b|\bed\b|[mM]ake|x\.sh|cp bin/zap x|ln -s bin/zap x`)

// Whatever a shell runs zap for is not allowed; and what only speaks of it is.
func TestDeniedByAnyShell(t *testing.T) {
	d := newDifferential(t)
	var scripts []string
	scripts = append(scripts, spellings...)
	for _, w := range wraps {
		scripts = append(scripts, strings.ReplaceAll(w, "%", "zap"))
	}
	scripts = append(scripts, starters...)
	for _, s := range scripts {
		if unread.MatchString(s) || d.verdict(s) != v1.Decision_allow {
			continue // nothing to compare
		}
		if d.ran(s) {
			t.Errorf("allowed, and a shell runs zap for it: %s", s)
		}
	}
	for _, s := range []string{"zap", "env zap", "x='zap'; $x", "sed '1e zap' file"} { // the stand-in stands in
		if !d.ran(s) {
			t.Errorf("no trace of %s", s)
		}
	}
	for _, s := range []string{"echo zap", "grep zap file", "ls bin/zap", "cat <<'E'\nzap\nE", "cat <<< zap", "git log --grep zap", "# zap", "echo 'zap; zap'", "x=zap; echo $x", "find . -name zap", "test -x bin/zap && echo y", "command -v zap", "type zap"} {
		if v := d.verdict(s); v != v1.Decision_allow {
			t.Errorf("%v: %s", v, s)
		}
		if d.ran(s) {
			t.Errorf("a shell runs zap for %s", s)
		}
	}
}

// FuzzDeniedByAnyShell puts wrappers, spellings and starters into each other:
// each byte of the input chooses one.
func FuzzDeniedByAnyShell(f *testing.F) {
	for i := range byte(12) {
		f.Add([]byte{i, i * 7, i * 13})
	}
	d := newDifferential(f)
	f.Fuzz(func(t *testing.T, choice []byte) {
		d.t = t
		if s := compose(choice); s != "" && !unread.MatchString(s) && d.verdict(s) == v1.Decision_allow && d.ran(s) {
			t.Errorf("allowed, and a shell runs zap for it: %s", s)
		}
	})
}

func compose(choice []byte) string {
	if len(choice) < 2 || len(choice) > 6 {
		return ""
	}
	inner := append(append([]string(nil), spellings...), starters...)
	s := inner[int(choice[0])%len(inner)]
	for _, c := range choice[1:] {
		w := wraps[int(c)%len(wraps)]
		quoted := s
		if i := strings.IndexByte(w, '%'); i > 0 && strings.Count(w[:i], "'")%2 == 1 {
			quoted = strings.ReplaceAll(s, "'", `'\''`)
		}
		s = strings.ReplaceAll(w, "%", quoted)
	}
	return s
}
