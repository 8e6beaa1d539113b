package gateway

import (
	"errors"
	"fmt"
	"os"
)

// rotated is a file that is renamed when it is full: name becomes name.1,
// name.1 becomes name.2, and so on. The oldest is removed.
type rotated struct {
	name  string
	most  int64 // bytes of one file
	files int
	to    *os.File
	size  int64
}

// openRotated opens the file for appending, or creates it so that only its owner
// can read it. A symbolic link is not followed.
func openRotated(name string, most int64, files int) (*rotated, error) {
	r := &rotated{name: name, most: most, files: files}
	return r, r.open()
}

func (r *rotated) open() error {
	if info, err := os.Lstat(r.name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: must be a regular file", r.name)
	}
	f, err := os.OpenFile(r.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY|noFollow, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 && readableByOthers {
		err = fmt.Errorf("%s: other users can read it: run chmod 600 %s", r.name, r.name)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	r.to, r.size = f, info.Size()
	return nil
}

// Write writes p into one file. A file that is full and cannot be renamed is not written to.
func (r *rotated) Write(p []byte) (int, error) {
	if r.to == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	if r.size > 0 && r.size+int64(len(p)) > r.most {
		if err := r.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := r.to.Write(p)
	r.size += int64(n)
	return n, err
}

// rotate renames the files and opens a new one. The newest is renamed first, to name.0: if that
// fails, no older file is lost. If a later rename fails, the next rotation begins with it, so that
// name.0 is not lost either.
func (r *rotated) rotate() error {
	if err := r.Close(); err != nil {
		return err
	}
	if info, err := os.Lstat(r.old(0)); err == nil && info.Mode().IsRegular() {
		if err := r.shift(); err != nil {
			return err
		}
	}
	if err := os.Rename(r.name, r.old(0)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := r.shift(); err != nil {
		return err
	}
	return r.open()
}

// shift renames name.0 and the files after it, and removes the oldest.
func (r *rotated) shift() error {
	for n := r.files - 1; n > 0; n-- {
		if err := os.Rename(r.old(n-1), r.old(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(r.old(0)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// old returns the name of the n-th older file.
func (r *rotated) old(n int) string { return fmt.Sprintf("%s.%d", r.name, n) }

// Close closes the file.
func (r *rotated) Close() error {
	if r.to == nil {
		return nil
	}
	f := r.to
	r.to = nil
	return f.Close()
}
