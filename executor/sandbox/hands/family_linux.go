package hands

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// family is all processes of one step: those in its mount namespace, which
// none can leave.
type family struct {
	ns   string
	main int
}

// ownFamily is that of the calling thread, which has its mount namespace but still the hands' root.
func ownFamily() (family, error) {
	ns, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return family{}, fmt.Errorf("the mount namespace: %w", err)
	}
	return family{ns: ns}, nil
}

func (f family) members() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == 1 {
			continue
		}
		if ns, err := os.Readlink("/proc/" + n + "/ns/mnt"); err == nil && ns == f.ns {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (f family) first() int { return f.main }

func (f family) signal(sig unix.Signal) {
	for _, pid := range f.members() {
		unix.Kill(pid, sig)
	}
}

func (f family) end() int { return kill(f) }

// kin are the processes of a step.
type kin interface {
	members() []int
	first() int // the program that was asked for
}

// kill stops all members until no new one turns up, then kills them. It
// returns how many there were beside the program itself.
func kill(k kin) int {
	stopped := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		for _, pid := range k.members() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				unix.Kill(pid, unix.SIGSTOP)
			}
		}
	}
	n := len(stopped)
	if stopped[k.first()] {
		n--
	}
	wait := 100 * time.Microsecond
	for len(stopped) > 0 {
		pids := k.members()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(wait)
		wait = min(2*wait, 20*time.Millisecond)
	}
	return n
}
