package hands

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prepare puts the calling thread, for good, into a mount namespace of its own
// and takes the rights that no later part needs. The thread must be locked and
// must die after it.
func prepare() (family, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return family{}, fmt.Errorf("a mount namespace: %w", err)
	}
	if err := boundCapabilities(); err != nil {
		return family{}, fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return family{}, fmt.Errorf("no_new_privs: %w", err)
	}
	return ownFamily()
}

// enter lays the step's workspace and makes the tree of commands the root.
func (t *tree) enter(s Step) error {
	if s.Upper != "" || len(s.Lower) > 0 {
		var lower []string
		for _, d := range append(s.Lower, t.workspace) {
			lower = append(lower, outside+d)
		}
		var upper []string
		if s.Upper != "" {
			upper = []string{outside + s.Upper, outside + s.Work}
		}
		if err := overlay(lower, upper, inside+t.workspace); err != nil {
			return fmt.Errorf("the overlay over the workspace: %w", err)
		}
		for _, h := range t.hide {
			if err := conceal(inside + h); err != nil {
				return fmt.Errorf("hiding %s: %w", h, err)
			}
		}
	}
	for _, h := range s.Hide {
		if err := t.cover(h); err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
	}
	if err := unix.Chroot(inside); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return nil
}

// confine takes every right from the calling thread that a program must not have.
func (t *tree) confine(workspace bool) error {
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if t.landlock > 0 {
		writable := t.writable
		if workspace {
			writable = append(writable[:len(writable):len(writable)], t.workspace)
		}
		if err := landlock(t.landlock, writable); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	prog := unix.SockFprog{Len: uint16(len(t.filter)), Filter: &t.filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}

// boundCapabilities sees to it that no program gets a capability.
func boundCapabilities() error {
	const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7 // no rights by being root, by changing ids, by ambient; locked
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= 63; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break
		} else if err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

func dropCapabilities() error {
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

func landlockVersion() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

const (
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	scopes = 3 // abstract sockets and signals stay among the step's own processes
)

// landlock lets the calling thread write below some folders only.
func landlock(version int, writable []string) error {
	r, err := newRuleset(version, 0)
	if err != nil {
		return err
	}
	defer unix.Close(r.fd)
	for _, dir := range writable {
		if err := r.allow(dir, r.handled); err != nil {
			return err
		}
	}
	return r.enforce()
}

// ruleset is a Landlock domain in the making.
type ruleset struct {
	fd      int
	handled uint64
}

func newRuleset(version int, more uint64) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: writeRights | more}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= 6 {
		attr.Scoped = scopes
		size = unsafe.Sizeof(attr)
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return nil, e
	}
	return &ruleset{int(fd), attr.Handled_access_fs}, nil
}

func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("%s: %w", path, e)
	}
	return nil
}

func (r *ruleset) enforce() error {
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); e != 0 {
		return e
	}
	return nil
}
