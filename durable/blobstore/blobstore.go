// Package blobstore keeps the large contents of agents in a bucket of
// gocloud.dev/blob: S3, Google Cloud Storage, Azure. For a directory use package
// temporalagent/blobdir: a read from fileblob fails while the same key is
// written again.
//
//	bucket, err := blob.OpenBucket(ctx, "s3://agents?region=eu-north-1")
//	blobs := blobstore.New(bucket)
//
// The program imports the driver of its cloud, such as gocloud.dev/blob/s3blob,
// and closes the bucket. A content is an object whose key is its SHA-256;
// blob.PrefixedBucket puts a prefix before it.
package blobstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// ErrHash is wrapped by the errors for a hash that is not the SHA-256 of the
// content in 64 lower-case hexadecimal digits.
var ErrHash = errors.New("blobstore: wrong hash")

// Store stores contents by their SHA-256. It is safe for concurrent use. It
// deletes nothing by itself.
type Store struct{ bucket *blob.Bucket }

// New returns the store in a bucket. The bucket must be the same for all workers
// of a task queue.
func New(bucket *blob.Bucket) *Store { return &Store{bucket} }

// Put stores the content under its hash. A content that is there already is
// written again: its age begins anew, so a rule of the bucket may delete objects
// by age. The error wraps ErrHash if the hash is not the hash of the content.
func (s *Store) Put(ctx context.Context, hash string, content []byte) error {
	if err := check(ctx, hash); err != nil {
		return err
	}
	if err := verify(hash, content); err != nil {
		return err
	}
	// The type is set because the bucket would guess one from the content.
	err := s.bucket.WriteAll(ctx, hash, content, &blob.WriterOptions{ContentType: "application/octet-stream"})
	return wrap(ctx, err)
}

// Get returns the content of the hash. The error wraps fs.ErrNotExist if there is
// none, and ErrHash if the object has changed.
func (s *Store) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := check(ctx, hash); err != nil {
		return nil, err
	}
	content, err := s.bucket.ReadAll(ctx, hash)
	if err != nil {
		return nil, wrap(ctx, err)
	}
	if err := verify(hash, content); err != nil {
		return nil, err
	}
	return content, nil
}

// Delete removes the content of the hash. It returns nil if there is none.
func (s *Store) Delete(ctx context.Context, hash string) error {
	if err := check(ctx, hash); err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, hash); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return wrap(ctx, err)
	}
	return nil
}

// wrap gives an error of the bucket what errors.Is finds.
func wrap(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("blobstore: %w: %w", ctx.Err(), err)
	case gcerrors.Code(err) == gcerrors.NotFound:
		return fmt.Errorf("blobstore: %w: %w", fs.ErrNotExist, err)
	}
	return fmt.Errorf("blobstore: %w", err)
}

// check refuses keys that are not hashes, such as paths, and a context that has
// ended: not every driver looks at it.
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
