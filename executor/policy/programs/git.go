package programs

var gitRead = Program{Reads: true, Writes: "--output", Runs: "--ext-diff --textconv", Values: "-n -S -G -L --author --grep --since --until --format --pretty -U --date"}

// git: what stands in Subs with Reads only reads in the forms that the flags,
// the count of operands, or a further sub-command permit.
var git = Program{
	Values: "-c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env",
	Dirs:   "-C",
	Runs:   "-c --git-dir --work-tree --exec-path --config-env -p --paginate",
	Subs: map[string]Program{
		"status": {Reads: true}, "log": gitRead, "diff": gitRead, "show": gitRead, "whatchanged": gitRead, "shortlog": gitRead,
		"diff-tree": gitRead, "diff-index": gitRead, "diff-files": gitRead, "range-diff": gitRead, "blame": {Reads: true, Values: "-L"}, "annotate": {Reads: true},
		"grep": {Reads: true, Runs: "-O --open-files-in-pager --textconv", Values: "-e -f -A -B -C -m"}, "ls-files": {Reads: true, Values: "-x -X"}, "ls-tree": {Reads: true},
		"ls-remote": {Runs: "--upload-pack --exec"}, "rev-parse": {Reads: true}, "rev-list": {Reads: true}, "describe": {Reads: true}, "merge-base": {Reads: true}, "name-rev": {Reads: true},
		"cat-file": {Reads: true, Runs: "--textconv --filters"}, "show-ref": {Reads: true, Writes: ""}, "for-each-ref": {Reads: true}, "count-objects": {Reads: true}, "check-ignore": {Reads: true}, "check-attr": {Reads: true}, "var": {Reads: true}, "version": {Reads: true}, "help": {}, "cherry": {Reads: true}, "show-branch": {Reads: true}, "verify-commit": {},
		"branch":       {Reads: true, Most: -1, Writes: "-d -D -m -M -c -C -f -u --delete --move --copy --force --set-upstream-to --unset-upstream --edit-description --track -t --create-reflog", Values: "--contains --no-contains --merged --no-merged --sort --format --points-at"},
		"tag":          {Reads: true, Most: -1, Only: "-l", Writes: "-a -s -u -d -f -m -F --annotate --sign --local-user --delete --force --message --file -e --edit --create-reflog", Values: "-n --contains --no-contains --merged --no-merged --sort --format --points-at"},
		"remote":       {Subs: map[string]Program{"": {Reads: true}, "show": {}, "get-url": {Reads: true}}},
		"stash":        {Subs: map[string]Program{"list": gitRead, "show": gitRead}},
		"worktree":     {Subs: map[string]Program{"list": {Reads: true}}},
		"reflog":       {Subs: map[string]Program{"": gitRead, "show": gitRead, "exists": {Reads: true}}},
		"submodule":    {Subs: map[string]Program{"": {Reads: true}, "status": {Reads: true}}},
		"notes":        {Subs: map[string]Program{"": {Reads: true}, "list": {Reads: true}, "show": gitRead}},
		"bisect":       {Subs: map[string]Program{"log": {Reads: true}, "view": {}}},
		"config":       {Reads: true, Only: "--get --get-all --get-regexp -l --list --get-urlmatch --get-color get list", Writes: "--add --replace-all --unset --unset-all --rename-section --remove-section -e --edit --global-set", Values: "-f --file --blob --type --default"},
		"symbolic-ref": {Reads: true, Most: 1, Writes: "-d --delete -m"},
		"commit":       {Values: "-m -F -C -c -t --message --file --author --date --fixup --squash --trailer --template", Runs: ""},
		"add":          {}, "fetch": {Runs: "--upload-pack --exec"}, "pull": {Runs: "--upload-pack --exec"}, "clone": {Runs: "-u --upload-pack -c --config --template"}, "checkout": {}, "switch": {}, "restore": {}, "reset": {}, "clean": {}, "merge": {}, "rebase": {Runs: "-x --exec"}, "cherry-pick": {}, "revert": {}, "init": {Runs: "--template"}, "mv": {}, "rm": {}, "apply": {}, "am": {}, "archive": {Runs: "--exec --remote"}, "gc": {}, "format-patch": {}, "bundle": {}, "fsck": {}, "update-index": {}, "update-ref": {}, "write-tree": {}, "hash-object": {}, "read-tree": {}, "filter-branch": {}, "sparse-checkout": {}, "lfs": {}, "maintenance": {}, "prune": {}, "repack": {}, "replace": {}, "rerere": {}, "daemon": {}, "push": {Runs: "--receive-pack --exec"},
		"send-pack": {SameAs: "git push"}, "http-push": {SameAs: "git push"},
	},
}

// GitSafeConfig are beginnings of settings that "git -c" may set without harm.
const GitSafeConfig = "color. column. core.quotepath= core.pager=cat log. diff.renames diff.context diff.noprefix status. advice. user.name= user.email= core.abbrev= safe.directory="

// GitStarts are the settings with which a repository makes git run a program,
// or take settings, hooks or attributes from elsewhere: section, then names,
// with or without a sub-section. From git-config(1), gitattributes(5),
// githooks(5), git-send-email(1) and git-lfs-config(5), as of git 2.51.
const GitStarts = `
core fsmonitor hookspath sshcommand gitproxy editor pager askpass alternaterefscommand virtualfilesystem
include path
includeif path
filter clean smudge process
diff external command textconv
merge driver
mergetool cmd path
difftool cmd path
credential helper
gpg program defaultkeycommand
pager *
sequence editor
interactive difffilter
trailer cmd command
tar command
man cmd path
browser cmd path
web browser
guitool cmd
instaweb httpd browser
init templatedir
gc recentobjectshook
uploadpack packobjectshook
remote uploadpack receivepack vcs proxy
hook command
sendemail smtpserver sendmailcmd tocmd cccmd headercmd
imap tunnel
lfs customtransfer extension path clean smudge
svn-remote *
cvsserver *
`

// GitHarmlessValues are programs that such a setting may name.
const GitHarmlessValues = "cat less more cache store"
