package blobdir_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
)

func open(t *testing.T) (*blobdir.Dir, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "some", "blobs")
	store, err := blobdir.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, dir
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestContentsComeBack(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	for _, content := range []string{"", "x", strings.Repeat("\x00\xff large", 1<<20)} {
		hash := hashOf(content)
		require.NoError(t, store.Put(t.Context(), hash, []byte(content)))
		got, err := store.Get(t.Context(), hash)
		require.NoError(t, err)
		require.Equal(t, content, string(got))

		info, err := os.Stat(filepath.Join(dir, hash))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "no temporary file is left")

	other, err := blobdir.Open(dir)
	require.NoError(t, err)
	defer other.Close()
	_, err = other.Get(t.Context(), hashOf("x"))
	require.NoError(t, err)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	hash := hashOf("x")
	require.NoError(t, store.Delete(t.Context(), hash), "nothing is there")
	require.NoError(t, store.Put(t.Context(), hash, []byte("x")))
	require.NoError(t, store.Delete(t.Context(), hash))
	_, err := store.Get(t.Context(), hash)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestHashesAreNoPaths(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	outside := filepath.Join(dir, "..", "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for _, hash := range []string{
		"", ".", "..", "../secret", "/etc/passwd", outside, hashOf("x")[1:], hashOf("x") + "0",
		strings.ToUpper(hashOf("x")), strings.Repeat("../", 21) + "x", strings.Repeat("\x00", 64), "C:" + hashOf("x")[2:],
	} {
		_, err := store.Get(t.Context(), hash)
		require.ErrorIs(t, err, blobdir.ErrHash, "%q", hash)
		require.ErrorIs(t, store.Put(t.Context(), hash, []byte("x")), blobdir.ErrHash, "%q", hash)
		require.ErrorIs(t, store.Delete(t.Context(), hash), blobdir.ErrHash, "%q", hash)
	}
	require.FileExists(t, outside)

	// A link that somebody put into the directory leads nowhere.
	link := hashOf("secret")
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, link)))
	_, err := store.Get(t.Context(), link)
	require.Error(t, err)
}

func TestWrongContent(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	hash := hashOf("right")
	require.ErrorIs(t, store.Put(t.Context(), hash, []byte("wrong")), blobdir.ErrHash)

	require.NoError(t, os.WriteFile(filepath.Join(dir, hash), []byte("wrong"), 0o600))
	_, err := store.Get(t.Context(), hash)
	require.ErrorIs(t, err, blobdir.ErrHash, "the file has changed on the disk")
	require.NoError(t, store.Put(t.Context(), hash, []byte("right")), "Put replaces it")
	got, err := store.Get(t.Context(), hash)
	require.NoError(t, err)
	require.Equal(t, "right", string(got))
}

func TestPutRenewsTheAge(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	hash := hashOf("x")
	file := filepath.Join(dir, hash)
	require.NoError(t, store.Put(t.Context(), hash, []byte("x")))
	old := time.Now().Add(-30 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	require.NoError(t, store.Put(t.Context(), hash, []byte("x")))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Less(t, time.Since(info.ModTime()), time.Hour)
}

func TestConcurrentPuts(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	content := strings.Repeat("content", 1<<14)
	hash := hashOf(content)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := store.Put(t.Context(), hash, []byte(content)); err != nil {
				t.Error(err)
			}
			if got, err := store.Get(t.Context(), hash); err != nil || string(got) != content {
				t.Error("a half content was read", err)
			}
		})
	}
	all.Wait()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestCancelledAndClosed(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, store.Put(ctx, hashOf("x"), []byte("x")), context.Canceled)
	_, err := store.Get(ctx, hashOf("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, store.Delete(ctx, hashOf("x")), context.Canceled)

	_, err = blobdir.Open(filepath.Join(os.DevNull, "blobs"))
	require.ErrorContains(t, err, "blobdir: ")
}

func TestFailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	hash := hashOf("x")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, hash, "in the way"), 0o700))
	require.ErrorContains(t, store.Put(t.Context(), hash, []byte("x")), "blobdir: ")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "only what was there")
	require.Error(t, store.Delete(t.Context(), hash))
}
