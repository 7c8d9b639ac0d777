package hands

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// look reads what a process stopped at its exec really is, from the kernel
// and from its new memory, which no other process can write to: the mount of
// /proc is read-only and process_vm_writev is refused.
func look(pid int) (*Program, error) {
	p, dir := new(Program), procDir(pid)
	var st unix.Stat_t
	if err := unix.Stat(dir+"exe", &st); err != nil {
		return p, err
	}
	p.Dev, p.Ino, p.Size = uint64(st.Dev), st.Ino, st.Size
	var err error
	if p.Path, err = readlink(dir + "exe"); err != nil {
		return p, err
	}
	b, err := readAll(dir + "cmdline")
	if err != nil {
		return p, err
	}
	p.Argv = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	p.Called, err = called(pid)
	return p, err
}

// more adds what only some verdicts need.
func (p *Program) more(pid int) error {
	b, err := readAll(procDir(pid) + "environ")
	if err != nil {
		return err
	}
	p.Env = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	f, err := os.Open(procDir(pid) + "exe")
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	p.Digest = hex.EncodeToString(h.Sum(nil))
	return nil
}

// called is the name that a program was started by, which the kernel leaves in
// its memory (AT_EXECFN of getauxval(3)); of a script, the script.
func called(pid int) (string, error) {
	const execfn = 31
	b, err := readAll(procDir(pid) + "auxv")
	if err != nil {
		return "", err
	}
	for ; len(b) >= 16; b = b[16:] {
		if binary.NativeEndian.Uint64(b) == execfn {
			return text(pid, uintptr(binary.NativeEndian.Uint64(b[8:])))
		}
	}
	return "", nil
}

// text reads a string of a process, a page at a time.
func text(pid int, at uintptr) (string, error) {
	var name []byte
	page := os.Getpagesize()
	for len(name) <= unix.PathMax {
		buf := make([]byte, page-int(at)%page)
		n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}, []unix.RemoteIovec{{Base: at, Len: len(buf)}}, 0)
		if err != nil {
			return "", err
		}
		for i, c := range buf[:n] {
			if c == 0 {
				return string(append(name, buf[:i]...)), nil
			}
		}
		name, at = append(name, buf[:n]...), at+uintptr(n)
	}
	return "", unix.ENAMETOOLONG
}

func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/" }

func cwd(pid int) string {
	dir, _ := readlink(procDir(pid) + "cwd")
	return dir
}

func readlink(path string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(path, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// readAll reads a file of /proc without the runtime's poller.
func readAll(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return b, err
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = append(make([]byte, 0, 4*cap(b)), b...)
		}
	}
}

// cut is the beginning of a list of words, for the record.
func cut(argv []string) []string {
	room := maxArgv
	for i, a := range argv {
		if room -= len(a); room < 0 {
			return append(argv[:i:i], a[:len(a)+room])
		}
	}
	return argv
}
