// Package blobdir keeps the large contents of agents in a directory, for
// workers that share a file system.
//
//	blobs, err := blobdir.Open("/var/lib/agents/blobs")
//
// A content is a file whose name is its SHA-256. It is written under another
// name, synced and renamed, so a crash leaves no half file under a hash. Files
// have mode 0600. A file whose name begins with a dot is what a crash left of a
// Put, and may be deleted when it is an hour old.
package blobdir

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrHash is wrapped by the errors for a hash that is not the SHA-256 of the
// content in 64 lower-case hexadecimal digits.
var ErrHash = errors.New("blobdir: wrong hash")

// Dir stores contents by their SHA-256. It is safe for concurrent use, also by
// several processes. It deletes nothing by itself.
type Dir struct{ root *os.Root }

// Open returns the store in a directory, which is made if it does not exist.
// All workers of a task queue must open the same directory.
func Open(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blobdir: %w", err)
	}
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, fmt.Errorf("blobdir: %w", err)
	}
	return &Dir{root}, nil
}

// Close releases the directory. The store must not be used afterwards.
func (d *Dir) Close() error { return d.root.Close() }

// Put stores the content under its hash. After Put has returned nil, the content
// survives a crash of the machine. Putting a content again renews the
// modification time of its file, so files can be deleted by age. The error wraps
// ErrHash if the hash is not the hash of the content.
func (d *Dir) Put(ctx context.Context, hash string, content []byte) error {
	if err := check(ctx, hash); err != nil {
		return err
	}
	if err := verify(hash, content); err != nil {
		return err
	}
	if d.renew(hash, content) {
		return nil
	}
	if err := d.write(hash, content); err != nil {
		return fmt.Errorf("blobdir: %w", err)
	}
	return nil
}

// renew gives a file that is whole a new modification time. It returns false if
// the file must be written. The name is synced here as well, because the process
// that wrote the file may not have done so yet.
func (d *Dir) renew(hash string, content []byte) bool {
	old, err := d.root.ReadFile(hash)
	now := time.Now()
	return err == nil && bytes.Equal(old, content) && d.root.Chtimes(hash, now, now) == nil && d.sync() == nil
}

// write puts a file in place in one step.
func (d *Dir) write(hash string, content []byte) error {
	temporary := "." + rand.Text()
	f, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = d.root.Rename(temporary, hash)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
		return err
	}
	return d.sync()
}

// sync makes the names of the files survive a crash of the machine. Windows
// syncs no directories.
func (d *Dir) sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get returns the content of the hash. The error wraps fs.ErrNotExist if there is
// none, and ErrHash if the file has changed on the disk.
func (d *Dir) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := check(ctx, hash); err != nil {
		return nil, err
	}
	content, err := d.root.ReadFile(hash)
	if err != nil {
		return nil, fmt.Errorf("blobdir: %w", err)
	}
	if err := verify(hash, content); err != nil {
		return nil, err
	}
	return content, nil
}

// Delete removes the content of the hash. It returns nil if there is none.
func (d *Dir) Delete(ctx context.Context, hash string) error {
	if err := check(ctx, hash); err != nil {
		return err
	}
	if err := d.root.Remove(hash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blobdir: %w", err)
	}
	return nil
}

// check refuses names that are not hashes, such as paths.
func check(ctx context.Context, hash string) error {
	if sum, err := hex.DecodeString(hash); err != nil || len(sum) != sha256.Size || hash != strings.ToLower(hash) {
		return fmt.Errorf("%w: the %d characters are not 64 lower-case hexadecimal digits", ErrHash, len(hash))
	}
	return ctx.Err()
}

func verify(hash string, content []byte) error {
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("%w: %d bytes have another one than %s", ErrHash, len(content), hash)
	}
	return nil
}
