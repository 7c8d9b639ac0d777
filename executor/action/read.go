package action

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/contract/picture"
)

// How much of a file one reading shows.
const (
	defaultLines = 2000
	maxLine      = 2000     // bytes of one line
	maxText      = 64 << 10 // bytes in all
)

// Read shows a text file in part, with line numbers, in constant memory, or an image.
func Read(ctx context.Context, e Env, a *v1.ReadFileArgs) (*Outcome, error) {
	if a.Artifact != "" {
		f, err := e.Artifact(a.Artifact)
		if err != nil {
			return nil, contract.Errorf(v1.Error_not_found, "there is no artifact %s", a.Artifact).WithField("args.artifact")
		}
		defer f.Close()
		return show(ctx, f, a.Artifact, a)
	}
	name, info, err := e.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, contract.Errorf(v1.Error_unsupported, "%s is a folder", a.Path).WithField("args.path").WithHint("list_files shows what is in it")
	case !info.Mode().IsRegular():
		return nil, contract.Errorf(v1.Error_unsupported, "%s is no regular file", a.Path).WithField("args.path")
	}
	f, err := e.Root.Open(name)
	if err != nil {
		return nil, e.missing(a.Path, name, err)
	}
	defer f.Close()
	return show(ctx, f, name, a)
}

func show(ctx context.Context, f *os.File, name string, a *v1.ReadFileArgs) (*Outcome, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	out := &Outcome{File: &v1.FileInfo{Path: name, Size: uint64(info.Size())}, TotalBytes: uint64(info.Size())}
	hash := sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, hash), int(min(max(info.Size(), 8<<10), 256<<10)))
	head, err := r.Peek(8 << 10)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if kind := picture.Kind(head); kind != "" {
		return out, look(r, hash, name, kind, out)
	}
	enc := encodingOf(head)
	out.File.Encoding = enc
	var lines *lines
	switch enc {
	case binary:
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, err
		}
		out.Text = fmt.Sprintf("%s is a binary file of %d bytes; it is not shown\n", name, info.Size())
	case utf16LE, utf16BE:
		if info.Size() > maxFile {
			return nil, contract.Errorf(v1.Error_too_large, "%s is %s text of %d bytes, the limit for that is %d", name, enc, info.Size(), maxFile)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		lines, err = number(ctx, bufio.NewReader(strings.NewReader(decode(data, enc))), a)
		if err != nil {
			return nil, err
		}
	default:
		if enc == utf8BOM {
			r.Discard(len(bom))
		}
		if lines, err = number(ctx, r, a); err != nil {
			return nil, err
		}
	}
	out.File.Digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	if lines != nil {
		lines.into(out, name)
	}
	return out, nil
}

// look reads an image. One that cannot be shown is said to be so.
func look(r io.Reader, hash hash.Hash, name, kind string, out *Outcome) error {
	out.File.Encoding = binary
	data, err := io.ReadAll(io.LimitReader(r, picture.MaxFile+1))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	out.File.Digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	p, err := picture.Fit(data)
	if err != nil {
		out.Text = fmt.Sprintf("%s (%s, %d bytes) is not shown: %v; a command may make a smaller or another copy of it\n", name, kind, out.File.Size, err)
		return nil
	}
	out.Text = fmt.Sprintf("%s: %v\n", name, p)
	out.Image = &v1.Image{MediaType: p.MediaType, Width: uint32(p.Width), Height: uint32(p.Height), Data: p.Data}
	return nil
}

// lines is the part of a file that is shown.
type lines struct {
	text              strings.Builder
	first, last       int
	total             int
	cutBytes, leftOut uint64
}

// number reads all lines, keeps the wanted ones with their numbers, and counts the rest.
func number(ctx context.Context, r *bufio.Reader, a *v1.ReadFileArgs) (*lines, error) {
	l := &lines{first: max(1, int(a.Offset))}
	limit := int(a.Limit)
	if limit == 0 {
		limit = defaultLines
	}
	for {
		if l.total%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		n := l.total + 1
		wanted := n >= l.first && n < l.first+limit && l.text.Len() < maxText
		read := 0
		for {
			part, err := r.ReadSlice('\n')
			if len(part) == 0 && err == io.EOF {
				break
			}
			if wanted {
				if read == 0 {
					fmt.Fprintf(&l.text, "%6d\t", n)
				}
				if room := maxLine - read; room > 0 {
					l.text.Write(part[:min(room, len(part))])
				}
			} else {
				l.leftOut += uint64(len(part))
			}
			read += len(part)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull && err != io.EOF {
				return nil, err
			}
		}
		if read == 0 {
			return l, nil
		}
		l.total = n
		if wanted {
			l.last = n
			if read > maxLine {
				l.cutBytes += uint64(read - maxLine)
				fmt.Fprintf(&l.text, " [… %d bytes of this line left out]\n", read-maxLine)
			}
		}
	}
}

func (l *lines) into(out *Outcome, name string) {
	out.Text = l.text.String()
	out.OmittedBytes = l.leftOut + l.cutBytes
	out.File.TotalLines = uint32(l.total)
	switch {
	case l.total == 0:
		out.Text = name + " is empty\n"
		return
	case l.last == 0:
		out.Text = fmt.Sprintf("%s has %d lines; line %d is past its end\n", name, l.total, l.first)
		return
	}
	out.File.FromLine, out.File.ToLine = uint32(l.first), uint32(l.last)
	if !strings.HasSuffix(out.Text, "\n") {
		out.Text += "\n"
		out.Notes = append(out.Notes, "the last line has no line break at its end")
	}
	if l.last < l.total {
		out.Text += fmt.Sprintf("[lines %d to %d of %d; go on with offset %d]\n", l.first, l.last, l.total, l.last+1)
	}
}
