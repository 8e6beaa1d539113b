package blobstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/toolmend/toolmend/durable/blobstore"
)

func Example() {
	bucket := memblob.OpenBucket(nil) // or blob.OpenBucket(ctx, "s3://agents")
	defer bucket.Close()
	blobs := blobstore.New(blob.PrefixedBucket(bucket, "contents/"))

	ctx := context.Background()
	sum := sha256.Sum256([]byte("a long result"))
	hash := hex.EncodeToString(sum[:])
	fmt.Println(blobs.Put(ctx, hash, []byte("a long result")))
	content, err := blobs.Get(ctx, hash)
	fmt.Println(string(content), err)
	fmt.Println(blobs.Delete(ctx, hash))
	// Output:
	// <nil>
	// a long result <nil>
	// <nil>
}
