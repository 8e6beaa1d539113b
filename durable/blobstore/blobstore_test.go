package blobstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/toolmend/toolmend/durable/blobstore"
)

// buckets are two drivers: what a test sees in both does not depend on the driver.
func buckets(t *testing.T) map[string]*blob.Bucket {
	t.Helper()
	files, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{NoTempDir: true})
	require.NoError(t, err)
	all := map[string]*blob.Bucket{"memory": memblob.OpenBucket(nil), "files": files}
	for _, b := range all {
		t.Cleanup(func() { _ = b.Close() })
	}
	return all
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, bucket := range buckets(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := blobstore.New(bucket)
			for _, content := range []string{"", "x", strings.Repeat("\x00\xff large", 1<<20)} {
				hash := hashOf(content)
				require.NoError(t, store.Delete(t.Context(), hash), "nothing is there")
				_, err := store.Get(t.Context(), hash)
				require.ErrorIs(t, err, fs.ErrNotExist)
				for range 2 {
					require.NoError(t, store.Put(t.Context(), hash, []byte(content)))
				}
				got, err := store.Get(t.Context(), hash)
				require.NoError(t, err)
				require.Equal(t, content, string(got))
				require.NoError(t, store.Delete(t.Context(), hash))
				_, err = store.Get(t.Context(), hash)
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		})
	}
}

func TestHashes(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	store := blobstore.New(bucket)
	for _, hash := range []string{"", "../secret", hashOf("x")[1:], strings.ToUpper(hashOf("x")), strings.Repeat("\x00", 64)} {
		require.ErrorIs(t, store.Put(t.Context(), hash, []byte("x")), blobstore.ErrHash, "%q", hash)
		_, err := store.Get(t.Context(), hash)
		require.ErrorIs(t, err, blobstore.ErrHash, "%q", hash)
		require.ErrorIs(t, store.Delete(t.Context(), hash), blobstore.ErrHash, "%q", hash)
	}
	require.ErrorIs(t, store.Put(t.Context(), hashOf("right"), []byte("wrong")), blobstore.ErrHash)

	require.NoError(t, bucket.WriteAll(t.Context(), hashOf("right"), []byte("wrong"), nil))
	_, err := store.Get(t.Context(), hashOf("right"))
	require.ErrorIs(t, err, blobstore.ErrHash, "the object has changed")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	store := blobstore.New(bucket)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, store.Put(ctx, hashOf("x"), []byte("x")), context.Canceled)
	_, err := store.Get(ctx, hashOf("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, store.Delete(ctx, hashOf("x")), context.Canceled)

	require.NoError(t, bucket.Close())
	require.ErrorContains(t, store.Put(t.Context(), hashOf("x"), []byte("x")), "blobstore: ")
	_, err = store.Get(t.Context(), hashOf("x"))
	require.ErrorContains(t, err, "blobstore: ")
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, store.Delete(t.Context(), hashOf("x")), "blobstore: ")
}

func TestConcurrentPuts(t *testing.T) {
	t.Parallel()
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	store := blobstore.New(bucket)
	content := strings.Repeat("content", 1<<14)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := store.Put(t.Context(), hashOf(content), []byte(content)); err != nil {
				t.Error(err)
			}
			if got, err := store.Get(t.Context(), hashOf(content)); err != nil || string(got) != content {
				t.Error("a half content was read", err)
			}
		})
	}
	all.Wait()
}
