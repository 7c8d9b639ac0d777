package programs

// Wrap is how a program runs the command in its own words.
type Wrap struct {
	Values    string // flags whose value is the next word
	Skip      int    // operands before the command
	Assigns   bool   // NAME=value words before the command set its environment
	Code      string // flags whose value is shell code
	Script    bool   // all its operands, joined, are shell code
	Shell     bool   // a shell: -c code, a script file, or code on its input
	Appends   bool   // gives the command further words from its input
	Markers   string // flags after which a command stands, up to ; or +
	Applet    bool   // its first operand is the program (busybox)
	Elsewhere bool   // the command runs on another machine or as another user
	Own       bool   // needs a permission of its own besides the command's
	Dirs      string // flags whose value is the folder the command runs in
	Changes   string // flags that make the command mean something else
	Output    string // flags whose value is a file that it writes
}

func wrap(w Wrap) Program { return Program{Wrap: &w} }

var shells = wrap(Wrap{Shell: true, Values: "-O +O -o +o --rcfile --init-file", Changes: "--rcfile --init-file"})

var wrappers = map[string]Program{
	"env":         wrap(Wrap{Assigns: true, Values: "-u --unset -a --argv0", Code: "-S --split-string", Dirs: "-C --chdir"}),
	"nice":        wrap(Wrap{Values: "-n --adjustment"}),
	"nohup":       wrap(Wrap{}),
	"setsid":      wrap(Wrap{}),
	"stdbuf":      wrap(Wrap{Values: "-i -o -e --input --output --error"}),
	"timeout":     wrap(Wrap{Values: "-k -s --kill-after --signal", Skip: 1}),
	"gtimeout":    wrap(Wrap{Values: "-k -s --kill-after --signal", Skip: 1}),
	"ionice":      wrap(Wrap{Values: "-c -n -p -P -u --class --classdata"}),
	"chrt":        wrap(Wrap{Skip: 1, Values: "-T -P -D"}),
	"taskset":     wrap(Wrap{Skip: 1}),
	"time":        wrap(Wrap{Values: "-f --format", Output: "-o --output"}),
	"command":     wrap(Wrap{}),
	"builtin":     wrap(Wrap{}),
	"exec":        wrap(Wrap{Values: "-a"}),
	"caffeinate":  wrap(Wrap{Values: "-t -w"}),
	"unbuffer":    wrap(Wrap{}),
	"chronic":     wrap(Wrap{}),
	"flock":       wrap(Wrap{Skip: 1, Values: "-w -E --timeout --wait --conflict-exit-code", Code: "-c --command", Own: true}),
	"script":      wrap(Wrap{Code: "-c --command", Own: true}),
	"strace":      wrap(Wrap{Values: "-e -p -s -u -E -a -P", Output: "-o --output", Own: true}),
	"ltrace":      wrap(Wrap{Values: "-e -p -s -u", Output: "-o --output", Own: true}),
	"prlimit":     wrap(Wrap{Own: true}),
	"unshare":     wrap(Wrap{Own: true, Values: "-S -G --setuid --setgid -w --wd"}),
	"nsenter":     wrap(Wrap{Own: true, Elsewhere: true, Values: "-t --target -S -G"}),
	"chroot":      wrap(Wrap{Skip: 1, Own: true, Elsewhere: true}),
	"fakeroot":    wrap(Wrap{Own: true}),
	"xvfb-run":    wrap(Wrap{Own: true, Values: "-n -s -e -f -p -w"}),
	"systemd-run": wrap(Wrap{Own: true, Elsewhere: true, Values: "-p -u --unit --property -E"}),
	"sudo":        wrap(Wrap{Assigns: true, Own: true, Values: "-u -g -h -p -C -r -t -T -U --user --group --host --prompt --chroot --role --type", Dirs: "-D --chdir"}),
	"doas":        wrap(Wrap{Own: true, Values: "-u -C"}),
	"pkexec":      wrap(Wrap{Own: true, Values: "--user"}),
	"runuser":     wrap(Wrap{Own: true, Values: "-u -g -G -s", Code: "-c --command"}),
	"su":          wrap(Wrap{Own: true, Skip: 1, Values: "-g -G -s", Code: "-c --command"}),
	"xargs":       wrap(Wrap{Appends: true, Values: "-I -n -P -L -s -d -E -a --replace --max-args --max-procs --max-lines --delimiter --arg-file"}),
	"parallel":    wrap(Wrap{Appends: true, Own: true, Script: true, Values: "-j --jobs -I -a --arg-file --delay --timeout -N -S"}),
	"watch":       wrap(Wrap{Script: true, Values: "-n --interval"}),
	"ssh":         wrap(Wrap{Script: true, Own: true, Elsewhere: true, Skip: 1, Values: "-p -i -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w", Changes: "-o -F"}),
	"eval":        wrap(Wrap{Script: true}),
	"busybox":     wrap(Wrap{Applet: true}),
	"toybox":      wrap(Wrap{Applet: true}),
	"npx":         wrap(Wrap{Own: true, Values: "-p --package", Code: "-c --call"}),
	"bunx":        wrap(Wrap{Own: true}),
	"pnpx":        wrap(Wrap{Own: true}),
	"uvx":         wrap(Wrap{Own: true, Values: "--from --with -p --python"}),
	"entr":        wrap(Wrap{Own: true}),
	"hyperfine":   wrap(Wrap{Script: true, Own: true, Values: "-w -r -m -M -n -p --warmup --runs"}),
	"sh":          shells, "bash": shells, "dash": shells, "zsh": shells, "ksh": shells, "ash": shells, "rbash": shells, "mksh": shells,
}

// Found by their flags rather than their first words.
var findWrap = Wrap{Markers: "-exec -execdir -ok -okdir"}
var fdWrap = Wrap{Markers: "-x -X --exec --exec-batch"}

// WrapOf is how a program runs others, nil if it does not.
func WrapOf(name string) *Wrap {
	switch name {
	case "find":
		return &findWrap
	case "fd", "fdfind":
		return &fdWrap
	}
	return table[name].Wrap
}
