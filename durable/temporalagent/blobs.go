package temporalagent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// BlobStore keeps contents by their SHA-256. It must be safe for concurrent use.
// What it keeps for a run is needed as long as that run is read.
// temporalagent never deletes: the same content may belong to several runs.
type BlobStore interface {
	// Put stores data under key, the SHA-256 of data in 64 hexadecimal digits. It is
	// no error to put a content again. When Put has returned, every Get finds it.
	Put(ctx context.Context, key string, data []byte) error
	// Get returns what was put under key. The error wraps fs.ErrNotExist if there is
	// nothing.
	Get(ctx context.Context, key string) ([]byte, error)
	// Delete removes a content, and returns nil if it does not exist.
	Delete(ctx context.Context, key string) error
}

const (
	blobSize = 32 << 10 // contents over this many bytes are kept in the store
	maxValue = 1 << 20  // bytes of one value in the history; the server's limit is 2 MB
	maxCache = 64 << 20 // bytes of contents that a process keeps

	maxResult = maxValue * 3 / 2 // bytes of the result of a run
	patience  = 5 * time.Minute  // how long Put is retried
)

// mark begins a reference. It and the 64 digits after it are base64, so that a
// reference can replace a content of type []byte too.
const (
	mark          = "toolmend/blob/1/"
	referenceSize = len(mark) + 64
)

// blobs moves long strings of JSON documents to the store and back.
type blobs struct {
	store BlobStore // nil: nothing is moved
	limit int       // contents over this many bytes are moved

	patience time.Duration
	room     int // bytes of the cache

	mu    sync.Mutex
	cache map[string][]byte
	order []string // of the keys, the oldest first
	size  int
}

func newBlobs(s BlobStore) *blobs {
	return &blobs{store: s, limit: blobSize, patience: patience, room: maxCache, cache: map[string][]byte{}}
}

// pack replaces the long strings of a document with references. A short string
// that looks like a reference is replaced too.
func (b *blobs) pack(ctx context.Context, doc []byte) ([]byte, error) {
	if b.store == nil {
		return doc, nil
	}
	return mapStrings(doc, func(literal []byte) bool {
		return len(literal) > b.limit || bytes.HasPrefix(literal[1:], []byte(mark))
	}, func(s string) (string, error) { return b.packString(ctx, s, b.limit) })
}

// packString returns a reference if s has more bytes than limit, or looks like one.
func (b *blobs) packString(ctx context.Context, s string, limit int) (string, error) {
	if b.store == nil || len(s) <= limit && !strings.HasPrefix(s, mark) {
		return s, nil
	}
	key, err := b.put(ctx, []byte(s))
	return mark + key, err
}

// unpack puts the contents back.
func (b *blobs) unpack(ctx context.Context, doc []byte) ([]byte, error) {
	return mapStrings(doc, func(literal []byte) bool {
		return len(literal) == referenceSize+2 && bytes.HasPrefix(literal[1:], []byte(mark))
	}, func(s string) (string, error) { return b.unpackString(ctx, s) })
}

func (b *blobs) unpackString(ctx context.Context, s string) (string, error) {
	if !isReference(s) {
		return s, nil
	}
	data, err := b.get(ctx, s[len(mark):])
	return string(data), err
}

func isReference(s string) bool { return len(s) == referenceSize && strings.HasPrefix(s, mark) }

func (b *blobs) put(ctx context.Context, data []byte) (key string, err error) {
	key = keyOf(data)
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	// What is stored was paid for, or has had its effect: it is worth a wait.
	for wait := firstWait; ; wait = min(2*wait, 100*firstWait) {
		now := b.store.Put(ctx, key, data)
		if now == nil {
			b.keep(key, data)
			return key, nil
		}
		if err == nil || ctx.Err() == nil { // the error before is more precise than the context's
			err = now
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("temporalagent: put %d bytes into the blob store: %w", len(data), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

const firstWait = 100 * time.Millisecond

func keyOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (b *blobs) get(ctx context.Context, key string) ([]byte, error) {
	b.mu.Lock()
	data, has := b.cache[key]
	b.mu.Unlock()
	if has {
		return data, nil
	}
	if b.store == nil {
		return nil, fmt.Errorf("temporalagent: the run refers to blob %s, and Blobs is not set", key)
	}
	data, err := b.store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("temporalagent: get blob %s: %w", key, err)
	}
	if keyOf(data) != key {
		return nil, fmt.Errorf("temporalagent: blob %s is damaged: its hash differs", key)
	}
	b.keep(key, data)
	return data, nil
}

// keep caches a content, and drops the oldest ones when there are too many.
func (b *blobs) keep(key string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, has := b.cache[key]; has || len(data) > b.room/4 {
		return
	}
	b.cache[key] = data
	b.order = append(b.order, key)
	for b.size += len(data); b.size > b.room; b.order = b.order[1:] {
		b.size -= len(b.cache[b.order[0]])
		delete(b.cache, b.order[0])
	}
}

// mapStrings returns a JSON document in which f has replaced the string values
// whose literals match. Keys of objects stay.
func mapStrings(doc []byte, match func(literal []byte) bool, f func(string) (string, error)) ([]byte, error) {
	var out bytes.Buffer
	copied := 0
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(doc) && doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(doc))
		literal := doc[i:end]
		if match(literal) && !isKey(doc[end:]) {
			var s string
			if err := json.Unmarshal(literal, &s); err != nil {
				return nil, err
			}
			s, err := f(s)
			if err != nil {
				return nil, err
			}
			now, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			out.Write(doc[copied:i])
			out.Write(now)
			copied = end
		}
		i = end - 1
	}
	if copied == 0 {
		return doc, nil
	}
	out.Write(doc[copied:])
	return out.Bytes(), nil
}

// isKey reports whether the string before rest is the key of an object's member.
func isKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}
