package serve

import (
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/toolmend/toolmend/transport"
)

// maxWindow is the memory that one zstd stream may demand before its first byte.
// The tools of the format use up to 8 MiB, unless they are told otherwise.
const maxWindow = 8 << 20

// decoders are the encodings of requests that the gateway reads beside gzip.
// Codex sends zstd if its user has a ChatGPT login.
var decoders = map[string]transport.Decoder{
	"zstd": func(r io.Reader) (io.Reader, error) {
		// With a concurrency of 1 it has no goroutines, so that nothing has to close it.
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	},
}
