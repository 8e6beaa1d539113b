package blobdir_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
)

var _ temporalagent.BlobStore = (*blobdir.Dir)(nil)

func Example() {
	dir, err := os.MkdirTemp("", "blobs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	blobs, err := blobdir.Open(dir) // for temporalagent.WorkerOptions and Options
	if err != nil {
		panic(err)
	}
	defer blobs.Close()

	ctx := context.Background()
	sum := sha256.Sum256([]byte("a long result"))
	hash := hex.EncodeToString(sum[:])
	fmt.Println(blobs.Put(ctx, hash, []byte("a long result")))
	content, err := blobs.Get(ctx, hash)
	fmt.Println(string(content), err)
	fmt.Println(blobs.Delete(ctx, hash))
	_, err = blobs.Get(ctx, hash)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// <nil>
	// a long result <nil>
	// <nil>
	// true
}
