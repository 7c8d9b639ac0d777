package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/executor/policy"
)

// What a command must not be able to do, tried through the whole executor.
// Each runs as the model's command with every rule on allow: the sandbox alone
// stands in the way.
func TestAttacks(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
	t.Setenv("ANTHROPIC_API_KEY", "k-secret-1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "k-secret-2")
	t.Setenv("SSH_AUTH_SOCK", "/tmp/agent.sock")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/tmp/bus")
	for name, text := range map[string]string{".ssh/id_rsa": "k-secret-3", ".aws/credentials": "k-secret-4", ".cfg/wallet": "k-secret-5", ".netrc": "k-secret-6"} {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := t.TempDir()
	victim := exec.Command("sleep", "300")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	pid := strconv.Itoa(victim.Process.Pid)
	b := newBed(t, allowAll, direct)

	t.Run("secrets of the home", func(t *testing.T) {
		r := b.script("grep -rs k-secret $HOME; cat ~/.ssh/id_rsa ~/.aws/credentials ~/.netrc; tar -cf - $HOME 2>/dev/null | grep -a secret; cat /proc/1/root/" + home + "/.ssh/id_rsa; true")
		if strings.Contains(r.GetOutput().GetText(), "k-secret") {
			t.Errorf("read: %q", r.GetOutput().GetText())
		}
	})
	t.Run("keys in the environment", func(t *testing.T) {
		r := b.script(`env; cat /proc/*/environ | tr '\0' '\n'; echo "${SSH_AUTH_SOCK:-none} ${DBUS_SESSION_BUS_ADDRESS:-none}"`)
		if strings.Contains(r.GetOutput().GetText(), "k-secret") {
			t.Error("a key is in the environment")
		}
		contains(t, r.GetOutput().GetText(), "none none")
	})
	t.Run("writing outside", func(t *testing.T) {
		b.script("echo x > " + out + "/PWNED; echo x > /etc/PWNED; echo x > /usr/bin/PWNED; echo x > $HOME/PWNED; ln -s " + out + " o; echo x > o/PWNED; mount -t tmpfs none /mnt && touch /mnt/PWNED")
		for _, p := range []string{out + "/PWNED", "/etc/PWNED", "/usr/bin/PWNED", home + "/PWNED", "/mnt/PWNED"} {
			if _, err := os.Lstat(p); err == nil {
				t.Errorf("%s was written", p)
			}
		}
		b.do(contract.WriteFile, map[string]any{"path": "o/PWNED", "content": "x"})
		b.do(contract.WriteFile, map[string]any{"path": "../PWNED", "content": "x"})
		b.do(contract.ApplyPatch, map[string]any{"patch": "*** Begin Patch\n*** Add File: o/PWNED\n+x\n*** End Patch\n"})
		if _, err := os.Lstat(out + "/PWNED"); err == nil {
			t.Error("a file action followed a link out of the workspace")
		}
	})
	t.Run("the private tmp", func(t *testing.T) {
		b.want(b.script("mktemp && python3 -c 'import tempfile;print(tempfile.mkdtemp())' && echo x > ${TMPDIR:-/tmp}/harness-was-here"), v1.Status_ok)
		if _, err := os.Lstat("/tmp/harness-was-here"); err == nil {
			t.Error("the machine's /tmp was written")
		}
	})
	t.Run("processes outside", func(t *testing.T) {
		b.script("kill -9 " + pid + "; kill -9 -1; kill -9 1")
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil || running(t, "sleep", "300") == 0 {
			t.Error("the process outside is gone")
		}
		contains(t, b.want(b.script("echo alive"), v1.Status_ok).GetOutput().GetText(), "alive")
	})
	t.Run("kernel surface", func(t *testing.T) {
		r := b.script(`python3 - <<'EOF'
import ctypes, socket, os
c = ctypes.CDLL(None, use_errno=True)
print("ptrace", c.ptrace(16, 1, 0, 0))
print("keyctl", c.syscall(250, 0, -3, 1))
print("unshare", c.unshare(0x10000000))
print("bpf", c.syscall(321, 0, 0, 0))
for fam, typ in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):
    try:
        socket.socket(fam, typ); print("IN")
    except OSError: pass
try:
    s = socket.socket(socket.AF_UNIX); s.connect('/var/run/docker.sock'); print("IN")
except OSError: pass
try:
    s = socket.create_connection(("192.0.2.1", 80), 1); print("IN")
except OSError: pass
try:
    os.open("/dev/tty", os.O_RDWR); print("IN")
except OSError: pass
EOF`)
		contains(t, r.GetOutput().GetText(), "ptrace -1", "keyctl -1", "unshare -1", "bpf -1")
		if strings.Contains(r.GetOutput().GetText(), "IN") {
			t.Errorf("%q", r.GetOutput().GetText())
		}
	})
	t.Run("set-user-id", func(t *testing.T) {
		r := b.script("sudo -n id; su -c id </dev/null; grep -i capeff /proc/self/status; grep NoNewPrivs /proc/self/status")
		contains(t, r.GetOutput().GetText(), "0000000000000000", "NoNewPrivs:\t1")
	})
	t.Run("the executor's own state", func(t *testing.T) {
		r := b.script("find / -name journal.db 2>/dev/null; cat /proc/1/cmdline | tr '\\0' ' '; ls -la /proc/1/fd /proc/self/fd")
		if strings.Contains(r.GetOutput().GetText(), "journal.db") {
			t.Errorf("the journal is in reach: %q", r.GetOutput().GetText())
		}
	})
	t.Run("bombs", func(t *testing.T) {
		for name, cmd := range map[string]string{
			"files":  `python3 -c "import os;[open('/dev/null') for _ in iter(int,1)]"`,
			"cpu":    `while :; do :; done`,
			"forks":  `bomb() { bomb | bomb & }; bomb; sleep 3`,
			"memory": `python3 -c "a=[];exec('while 1: a.append(bytearray(10**8))')"`,
		} {
			start := time.Now()
			r := b.do(contract.RunCommand, map[string]any{"cmd": cmd, "timeout_s": 4})
			if name != "forks" && r.Status == v1.Status_ok {
				t.Errorf("%s: %v", name, r)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("%s took %v", name, took)
			}
			b.want(b.script("echo alive"), v1.Status_ok)
		}
	})
	t.Run("git still works", func(t *testing.T) {
		if out, err := exec.Command("git", "init", "-q", b.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r := b.want(b.script("echo a > a && git add a && git -c user.email=t@t.test -c user.name=t commit -qm a && git log --oneline | wc -l"), v1.Status_ok)
		contains(t, r.GetOutput().GetText(), "1")
		r = b.script("echo '#!/bin/sh' > .git/hooks/pre-commit; git config core.fsmonitor ./x; true")
		if _, err := os.Lstat(filepath.Join(b.dir, ".git/hooks/pre-commit")); err == nil || r.Status != v1.Status_denied {
			t.Errorf("a hook was planted: %v", r.Status)
		}
	})
}

// script runs a text past the policy, which sees only the name of a file.
func (b *bed) script(text string) *v1.StepResult {
	b.t.Helper()
	b.write("attack.sh", text)
	return b.do(contract.RunCommand, map[string]any{"cmd": "bash ./attack.sh", "timeout_s": 30})
}

// Whatever the policy allows, the model's own words cannot widen it.
func TestDeniedStaysDenied(t *testing.T) {
	b := newBed(t, policy.Options{Deny: []string{"Bash(curl:*)"}, Allow: []string{"Bash(*)"}}, direct)
	for _, cmd := range []string{"curl x", "/usr/bin/curl x", "echo a | xargs curl", "bash -c 'curl x'", "timeout 5 curl x", "env A=b curl x", "c\\url x", "'curl' x", "$(echo curl) x"} {
		if r := b.sh(cmd); r.Status != v1.Status_denied && r.Status != v1.Status_awaiting_approval {
			t.Errorf("%s: %v", cmd, r.Status)
		}
	}
}
