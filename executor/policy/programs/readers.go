package programs

// table is every program that is known, by its base name.
var table = merge(readers, text, writers, network, builtins, wrappers, interpreters, builds,
	map[string]Program{"git": git})

func merge(parts ...map[string]Program) map[string]Program {
	all := map[string]Program{}
	for _, part := range parts {
		for name, p := range part {
			all[name] = p
		}
	}
	return all
}

var read = Program{Reads: true}

// readers look at files and at the system.
var readers = map[string]Program{
	"ls": read, "dir": read, "cat": read, "tac": read, "nl": read, "head": {Reads: true, Values: "-n -c --lines --bytes"},
	"tail": {Reads: true, Values: "-n -c --lines --bytes"}, "wc": {Reads: true, Runs: "--files0-from"}, "stat": read, "du": {Reads: true, Values: "-d -B -t --max-depth"},
	"df": read, "cmp": read, "comm": read, "basename": read, "dirname": read, "realpath": read, "readlink": read,
	"md5sum": read, "sha1sum": read, "sha224sum": read, "sha256sum": read, "sha384sum": read, "sha512sum": read, "b2sum": read, "cksum": read, "sum": read,
	"od": read, "hexdump": read, "strings": read, "nm": {Reads: true, Runs: "--plugin"}, "size": read, "readelf": read, "ldd": {},
	"objdump": read, "tree": {Reads: true, Writes: "-o -R", Values: "-L -P -I"}, "id": read, "whoami": read, "groups": read, "uname": read, "arch": read, "nproc": read,
	"uptime": read, "free": read, "ps": read, "pgrep": read, "which": read, "whereis": read, "tty": read, "locale": read, "getconf": read,
	"lscpu": read, "lsblk": read, "cal": read, "seq": read, "yes": read, "sleep": read, "file": {Reads: true, Writes: "-C --compile", Values: "-m -F -f"},
	"date":     {Reads: true, Writes: "-s --set", Values: "-d -r -I --date --reference"},
	"xxd":      {Reads: true, Most: 1, Values: "-c -g -l -s -o -cols -groupsize -len -seek"},
	"hostname": {Reads: true, Most: -1, Writes: "-F -b --file"},
	"find": {Reads: true, Single: true, Language: "find",
		Writes: "-delete -fprint -fprint0 -fprintf -fls", Runs: "-files0-from"},
	"fd":   {Reads: true, Runs: "-x -X --exec --exec-batch", Values: "-e -E -t -d -g --extension --exclude --type --max-depth"},
	"man":  {Reads: true, Runs: "-P -H -C --pager --html --config-file -X --gxditview -l --local-file -p --preprocessor"},
	"less": {}, "more": {}, "printenv": read, "env": {}, "cksfv": {},
	"jq":    {Reads: true, Language: "jq", Values: "-L --arg --argjson --indent"},
	"yq":    {Reads: true, Writes: "-i --inplace -s --split-exp"},
	"tokei": read, "cloc": {Reads: true, Writes: "--out --report-file"}, "scc": {Reads: true, Writes: "-o --output"},
	"bat": {Reads: true, Runs: "--pager"}, "exa": read, "eza": read,
	"dpkg-query": read, "tput": read, "getfacl": read, "lsattr": read, "sw_vers": read,
}

// text takes text in and gives text out.
var text = map[string]Program{
	"grep":  {Reads: true, Operands: TextThenIn, Values: "-e -f -m -A -B -C --regexp --file --max-count --include --exclude --exclude-dir --color"},
	"egrep": {Reads: true, Operands: TextThenIn, Values: "-e -f -m -A -B -C"}, "fgrep": {Reads: true, Operands: TextThenIn, Values: "-e -f -m -A -B -C"},
	"zgrep": read, "zcat": read, "xzcat": read, "bzcat": read, "zstdcat": read,
	"rg":   {Reads: true, Operands: TextThenIn, Runs: "--pre --hostname-bin", Values: "-e -f -g -t -T -m -A -B -C -j -M -r --regexp --file --glob --iglob --type --max-count --sort"},
	"ag":   {Reads: true, Operands: TextThenIn, Runs: "--pager"},
	"sort": {Reads: true, Writes: "-o --output", Runs: "--compress-program --files0-from -T --temporary-directory", Values: "-k -t -S --key --field-separator --buffer-size --parallel"},
	"uniq": {Reads: true, Most: 1, Values: "-f -s -w --skip-fields --skip-chars --check-chars"}, "cut": {Reads: true, Values: "-d -f -c -b --delimiter --fields"}, "paste": {Reads: true, Values: "-d"},
	"tr": {Reads: true, Operands: Text}, "fold": read, "fmt": read, "expand": read, "unexpand": read, "column": read, "rev": read, "join": read, "pr": read, "tsort": read, "shuf": {Reads: true, Writes: "-o --output", Values: "-n -i"},
	"diff": {Reads: true, Writes: "--output", Values: "-U -C -x -X -I -W"}, "diff3": {Reads: true, Runs: "--diff-program"}, "sdiff": {Reads: true, Writes: "-o --output", Runs: "--diff-program"}, "colordiff": read,
	"sed":    {Reads: true, Language: "sed", Writes: "-i --in-place", Runs: "-f --file", Values: "-e -l --expression --line-length"},
	"awk":    {Reads: true, Language: "awk", Runs: "-f --file -E --exec -i --include -l --load -o --pretty-print -d --dump-variables -p --profile -D --debug", Values: "-F -v --field-separator --assign"},
	"gawk":   {Reads: true, Language: "awk", Runs: "-f --file -E --exec -i --include -l --load -o --pretty-print -d --dump-variables -p --profile -D --debug", Values: "-F -v --field-separator --assign"},
	"mawk":   {Reads: true, Language: "awk", Runs: "-f -W", Values: "-F -v"},
	"base64": read, "base32": read, "iconv": {Reads: true, Writes: "-o --output", Values: "-f -t"}, "numfmt": read, "factor": read, "expr": read, "bc": {}, "nkf": {},
}

// builtins are the shell's own.
var builtins = map[string]Program{
	"echo": read, "printf": {Reads: true, Values: "-v"}, "pwd": read, "true": read, "false": read, ":": read, "test": read, "[": read,
	"exit": read, "return": read, "break": read, "continue": read, "shift": read, "wait": read, "jobs": read, "type": read, "hash": {Reads: true, Runs: "-p"},
	"set": read, "unset": read, "umask": read, "ulimit": read, "times": read, "let": read, "dirs": read, "shopt": read, "caller": read, "logout": read, "suspend": {}, "disown": read,
	"cd": read, "pushd": read, "popd": read, "chdir": read, "history": {Reads: true, Writes: "-w -a -r -n -s -c -d -p"},
	"read": {Reads: true, Sets: true, Values: "-d -n -N -p -t -u -i -a"}, "getopts": {Reads: true, Sets: true}, "mapfile": {Reads: true, Sets: true, Runs: "-C", Values: "-d -n -O -s -u -c"}, "readarray": {Reads: true, Sets: true, Runs: "-C", Values: "-d -n -O -s -u -c"},
	"local": read, "declare": read, "typeset": read, "export": read, "readonly": read,
	"compgen": {Reads: true, Runs: "-C -F -W"}, "help": read,
}

// writers change files; with their operands known, each is judged by its place.
var writers = map[string]Program{
	"tee": {Operands: WriteAll}, "touch": {Operands: WriteAll, Values: "-d -r -t"}, "mkdir": {Operands: WriteAll, Values: "-m --mode"}, "rmdir": {Operands: WriteAll},
	"rm": {Operands: WriteAll}, "unlink": {Operands: WriteAll}, "shred": {Operands: WriteAll, Values: "-n -s"}, "truncate": {Operands: WriteAll, Values: "-s -r --size"},
	"mv": {Operands: WriteAll, Copies: true, Dirs: "-t --target-directory", Values: "-S"}, "cp": {Operands: WriteLast, Copies: true, Dirs: "-t --target-directory", Values: "-S"},
	"ln": {Operands: WriteLast, Copies: true, Dirs: "-t --target-directory", Values: "-S"}, "link": {Operands: WriteLast, Copies: true}, "install": {Operands: WriteLast, Copies: true, Dirs: "-t --target-directory", Values: "-m -o -g -S", Runs: "--strip-program"},
	"rsync": {Operands: WriteLast, Copies: true, Values: "-e --rsh", Runs: "-e --rsh --rsync-path"}, "apt-get": {Runs: "-o --option -c --config-file"}, "apt": {Runs: "-o --option -c --config-file"}, "dd": {Copies: true},
	"chmod": {}, "chown": {}, "patch": {Dirs: "-d --directory", Values: "-p -i -o"}, "split": {Runs: "--filter", Values: "-a -b -C -l -n -t"}, "csplit": {},
	"tar": {Runs: "--checkpoint-action --to-command -I --use-compress-program -F --info-script --new-volume-script --rsh-command --rmt-command", Dirs: "-C --directory", Values: "-f --file -T -X",
		Subs: nil},
	"unzip": {Dirs: "-d"}, "zip": {Runs: "-TT --unzip-command"}, "gzip": {}, "gunzip": {}, "ed": {}, "ex": {}, "vi": {}, "vim": {},
	"crontab": {}, "kill": {}, "pkill": {}, "killall": {},
}

// network reaches other machines by itself.
var network = map[string]Program{
	"curl": {Network: true, Runs: "-x --proxy --preproxy --socks5 --socks4 --socks5-hostname -K --config --connect-to --resolve", Values: "-H -d -X -A -b -e -u -m --header --data --request --user --max-time"},
	"wget": {Network: true, Runs: "-e --execute --use-askpass --config"}, "ping": {Network: true}, "nslookup": {Network: true}, "dig": {Network: true}, "host": {Network: true}, "getent": {Network: true},
	"nc": {Network: true}, "ncat": {Network: true}, "netcat": {Network: true}, "socat": {Network: true}, "telnet": {Network: true}, "ftp": {Network: true}, "sftp": {Network: true}, "scp": {Network: true}, "whois": {Network: true}, "traceroute": {Network: true}, "aria2c": {Network: true}, "http": {Network: true}, "https": {Network: true},
}

// interpreters run code of a language that is not read here. The flag lists
// are those that only say something about the interpreter.
var interpreters = map[string]Program{
	"python": {}, "python3": {}, "node": {}, "ruby": {}, "perl": {}, "php": {}, "lua": {}, "osascript": {}, "pwsh": {}, "deno": {},
}
