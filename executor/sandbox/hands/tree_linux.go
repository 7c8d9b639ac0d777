package hands

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The hands' own root holds the outside, what commands see, and a /proc.
const (
	outside = "/outside"
	inside  = "/inside"
	sealed  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// tree is what commands see, ready for steps.
type tree struct {
	workspace string
	hide      []string // inside the workspace: to be hidden in each step
	writable  []string // beside the workspace, as commands name them
	landlock  int      // its version, 0 where there is none
	filter    []unix.SockFilter
	spares    chan *worker // a thread that is ready before its step comes
}

func build(s Setup) (*tree, Ready) {
	t := &tree{workspace: s.Workspace, landlock: landlockVersion(), spares: make(chan *worker, 1)}
	hint := ""
	err := func() (err error) {
		if t.filter, err = filter(socketFamilies); err != nil {
			return err
		}
		if err := loopback(); err != nil {
			return fmt.Errorf("the loopback device: %w", err)
		}
		if err := ownRoot(); err != nil {
			hint = "a container must allow mounts inside user namespaces: in Docker --security-opt seccomp=unconfined --security-opt systempaths=unconfined; on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0"
			return err
		}
		return t.furnish(s)
	}()
	if err != nil {
		return nil, Ready{Error: err.Error(), Hint: hint}
	}
	return t, Ready{Capabilities: t.probe(s)}
}

// ownRoot moves the machine's tree to /outside and copies it, read-only, to /inside.
func ownRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	const base = "/tmp"
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("a first mount: %w", err)
	}
	for _, d := range []string{outside, inside, "/proc", "/empty"} {
		if err := os.Mkdir(base+d, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(base+"/nothing", nil, 0); err != nil {
		return err
	}
	if err := os.Chmod(base+"/empty", 0); err != nil {
		return err
	}
	if err := unix.Mount("proc", base+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("a fresh /proc: %w", err)
	}
	// Since Linux 6.14 the bound counts in this pid namespace alone. Older
	// kernels refuse the write, and the processes are counted as they run.
	os.WriteFile(base+"/proc/sys/kernel/pid_max", []byte(maxPids), 0)
	if err := unix.PivotRoot(base, base+outside); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for _, n := range []string{"/nothing", "/empty"} { // sealed once, as is whatever they are laid over
		if err := unix.Mount(n, n, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := seal(n, unix.MountAttr{Attr_set: sealed}); err != nil {
			return err
		}
	}
	if err := unix.Mount(outside, inside, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("the system: %w", err)
	}
	if err := seal(inside, unix.MountAttr{Attr_set: sealed}); err != nil {
		return fmt.Errorf("the system read-only: %w", err)
	}
	return unix.Mount("proc", inside+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
}

// maxPids is how many processes and threads one session may have at once: a
// fork bomb of root, whom RLIMIT_NPROC does not bind, must not take the machine's.
const maxPids = "4096"

func seal(path string, a unix.MountAttr) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &a)
}

// furnish lays masks, devices, caches and the workspace over the system.
func (t *tree) furnish(s Setup) error {
	if err := devices(); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	t.writable = append(t.writable, "/dev")
	for _, m := range s.Masks {
		mode := "mode=0755,size=5%"
		if m == "/tmp" || m == "/var/tmp" {
			mode = "mode=1777,size=20%" // of the memory, which it takes
		}
		if err := place(m); err != nil {
			return fmt.Errorf("a private %s: %w", m, err)
		}
		if err := unix.Mount("tmpfs", inside+m, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, mode); err != nil {
			return fmt.Errorf("a private %s: %w", m, err)
		}
		if m != "/run" && m != "/var/run" {
			t.writable = append(t.writable, m)
		}
	}
	for _, h := range s.Homes {
		if err := os.MkdirAll(inside+h, 0o755); err != nil && !os.IsExist(err) {
			return err
		}
	}
	for i, b := range s.Binds {
		if b.Cache && t.cache(s.State, strconv.Itoa(i), b.Path) == nil {
			t.writable = append(t.writable, b.Path)
			continue
		}
		if err := show(b.Path); err != nil {
			return fmt.Errorf("%s: %w", b.Path, err)
		}
	}
	if err := show(s.Workspace); err != nil {
		return fmt.Errorf("the workspace: %w", err)
	}
	for _, h := range s.Hide {
		if strings.HasPrefix(h, s.Workspace+"/") {
			t.hide = append(t.hide, h)
		}
		if err := conceal(inside + h); err != nil {
			return fmt.Errorf("hiding %s: %w", h, err)
		}
	}
	return nil
}

// show binds a path of the outside, read-only, at the same place inside.
func show(path string) error {
	if err := place(path); err != nil {
		return err
	}
	if err := unix.Mount(outside+path, inside+path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return seal(inside+path, unix.MountAttr{Attr_set: sealed})
}

// place makes the mount point for a path where a mask took it away.
func place(path string) error {
	info, err := os.Stat(outside + path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(inside + path); err == nil {
		return nil
	}
	if info.IsDir() {
		return os.MkdirAll(inside+path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(inside+path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(inside+path, nil, 0o600)
}

func (t *tree) cache(state, name, path string) error {
	upper, work := filepath.Join(outside, state, "caches", name, "upper"), filepath.Join(outside, state, "caches", name, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := place(path); err != nil {
		return err
	}
	return overlay([]string{outside + path}, []string{upper, work}, inside+path)
}

// conceal puts nothing over what is at a path, if anything is.
func conceal(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	nothing := "/nothing"
	if info.IsDir() {
		nothing = "/empty"
	}
	return unix.Mount(nothing, path, "", unix.MS_BIND, "")
}

// cover conceals a path that the steps before may have changed: no link in it
// is followed, and what is no file or folder any more stays as it is.
func (t *tree) cover(path string) error {
	root, err := unix.Open(inside, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, strings.TrimPrefix(path, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
		return nil // not to be reached here
	default:
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	nothing := "/nothing"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		nothing = "/empty"
	case unix.S_IFLNK:
		return nil
	}
	return unix.Mount(nothing, "/proc/self/fd/"+strconv.Itoa(fd), "", unix.MS_BIND, "")
}

// overlay names its layers by descriptor: no path needs escaping, and none shows in mountinfo.
// Without the upper folder and its work folder it is read-only.
func overlay(lower, upper []string, at string) error {
	var names []string
	for _, d := range append(lower[:len(lower):len(lower)], upper...) {
		fd, err := unix.Open(d, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(d, outside), err)
		}
		defer unix.Close(fd)
		names = append(names, "/proc/self/fd/"+strconv.Itoa(fd))
	}
	n := len(lower)
	opts := "userxattr,lowerdir=" + strings.Join(names[:n], ":")
	if len(upper) == 2 {
		opts += ",upperdir=" + names[n] + ",workdir=" + names[n+1]
	}
	return unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, opts)
}

// devices makes a /dev of what programs need.
func devices() error {
	dev := inside + "/dev"
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return err
	}
	for _, n := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := os.WriteFile(dev+"/"+n, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount(outside+"/dev/"+n, dev+"/"+n, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, dev+"/"+name); err != nil {
			return err
		}
	}
	for _, d := range []string{"/pts", "/shm"} {
		if err := os.Mkdir(dev+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600"); err != nil {
		return err
	}
	return unix.Mount("tmpfs", dev+"/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=20%")
}

// loopback brings up the only network there is.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
