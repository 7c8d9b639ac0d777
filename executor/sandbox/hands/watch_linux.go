package hands

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch holds a step to the limits that the kernel does not know of a family
// of processes. It looks at what they are, so a limit strikes a moment late.
type watch struct {
	kin
	step  Step
	ticks int
	files bool // one process had all the descriptors that it may have
	disk  disk
}

func newWatch(k kin, s Step) *watch {
	w := &watch{kin: k, step: s}
	if s.Upper != "" && s.Disk > 0 {
		w.disk = disk{upper: outside + s.Upper, limit: s.Disk}
		w.disk.free, _ = free(w.disk.upper)
		w.disk.next = s.Disk / 2
	}
	return w
}

// clock is how many ticks of CPU time the kernel counts in a second (USER_HZ, proc_pid_stat(5)).
const clock = 100

// struck names the limit that the family is over, "" for none.
func (w *watch) struck() string {
	w.ticks++
	pids := w.members()
	if w.step.Processes > 0 && len(pids) > w.step.Processes {
		return "processes"
	}
	var memory uint64
	var cpu time.Duration
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		if w.step.Memory > 0 {
			memory += private(dir)
		}
		if w.step.CPU > 0 && w.ticks%8 == 0 {
			cpu += spent(dir)
		}
		// Since Linux 6.2 the size of this folder is the number of descriptors.
		var st unix.Stat_t
		if w.step.OpenFiles > 0 && unix.Stat(dir+"/fd", &st) == nil && st.Size >= int64(w.step.OpenFiles) {
			w.files = true
		}
	}
	switch {
	case w.step.Memory > 0 && memory > w.step.Memory:
		return "memory"
	case w.step.CPU > 0 && cpu > w.step.CPU:
		return "cpu"
	case w.disk.over():
		return "disk"
	}
	return ""
}

// private is the memory, in bytes, that a process does not share with files.
func private(dir string) uint64 {
	b, err := os.ReadFile(dir + "/statm")
	var size, resident, shared uint64
	if err != nil {
		return 0
	}
	if n, _ := fmt.Sscan(string(b), &size, &resident, &shared); n == 3 && resident > shared {
		return (resident - shared) * uint64(os.Getpagesize())
	}
	return 0
}

// spent is the CPU time of a process and of its children that it has waited for.
func spent(dir string) time.Duration {
	b, _ := os.ReadFile(dir + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	var ticks int64
	for i := 11; i <= 14 && i < len(fields); i++ { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clock
}

// disk is what a step wrote. Adding it up costs as much as there is, so that
// is done only when the file system has lost as much room as would matter.
type disk struct {
	upper      string
	limit      uint64
	free, next uint64 // the room at the begin, and the loss at which to look
}

func free(path string) (uint64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	return st.Bfree * uint64(st.Bsize), err
}

func (d *disk) over() bool {
	if d.upper == "" {
		return false
	}
	now, err := free(d.upper)
	if err != nil || now >= d.free || d.free-now < d.next {
		return false
	}
	used := written(d.upper)
	if used > d.limit {
		return true
	}
	d.next = d.free - now + max((d.limit-used)/2, 1<<20)
	return false
}

// written is the room that the files below dir take.
func written(dir string) (total uint64) {
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it goes on while we look
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				total += uint64(st.Blocks) * 512
			}
		}
		return nil
	})
	return total
}

// ended names the limit that made a failed command fail, as far as it shows afterwards.
func (w *watch) ended() string {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(inside+dir, &st) == nil && st.Blocks > 0 && st.Bavail == 0 {
			return "disk"
		}
	}
	if w.files {
		return "open_files"
	}
	return ""
}
