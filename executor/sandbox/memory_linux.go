package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	v1 "harness/contract/harness/v1"
)

// memory is what trying found, and where that holds.
type memory struct {
	Here         string
	Capabilities []*v1.Capability
	Meets        bool
}

// here stands for all that what was found depends on: the boot, the user and
// his rights, the namespaces and filters that we run in, our program, and the
// file systems of the state and the workspace. What changes within a boot, as
// a sysctl, shows when the hands come up: then no command runs.
func here(c Config) string {
	h := sha256.New()
	for _, f := range []string{"/proc/sys/kernel/random/boot_id", "/proc/self/attr/current", "/proc/self/uid_map"} {
		b, _ := os.ReadFile(f)
		fmt.Fprintf(h, "%q\n", b)
	}
	for _, ns := range []string{"user", "mnt", "pid", "net"} {
		to, _ := os.Readlink("/proc/self/ns/" + ns)
		fmt.Fprintln(h, to)
	}
	nnp, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	filter, _ := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	unix.Capget(&header, &rights[0])
	fmt.Fprintln(h, os.Getuid(), os.Getgid(), nnp, filter, rights)
	for _, f := range []string{c.Self, c.State, c.Workspace} {
		var st unix.Stat_t
		unix.Stat(f, &st)
		fmt.Fprintln(h, st.Dev)
		if f == c.Self {
			fmt.Fprintln(h, st.Ino, st.Size, st.Mtim)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recall takes over what was found before, if that is so here and now.
func (s *Sandbox) recall() bool {
	if s.config.Memory == "" {
		return false
	}
	b, err := os.ReadFile(s.config.Memory)
	var m memory
	if err != nil || json.Unmarshal(b, &m) != nil || !m.Meets || m.Here != here(s.config) {
		return false
	}
	s.caps, s.meets = m.Capabilities, true
	return true
}

func (s *Sandbox) remember() {
	if s.config.Memory == "" || !s.meets {
		return
	}
	b, err := json.Marshal(memory{here(s.config), s.caps, s.meets})
	if err != nil {
		return
	}
	f, err := os.CreateTemp(s.config.State, "memory-")
	if err != nil {
		return // only the next start is slower
	}
	_, err = f.Write(b)
	if f.Close(); err == nil {
		err = os.Rename(f.Name(), s.config.Memory)
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

func (s *Sandbox) forget() {
	if s.config.Memory != "" {
		os.Remove(s.config.Memory)
	}
}

func sameCapability(a, b *v1.Capability) bool { return proto.Equal(a, b) }
