package codec

import (
	"encoding/base64"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// DataURL returns the data of a part as a data: URL. Source: RFC 2397.
func DataURL(p middleware.Part) string {
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// FromDataURL reads a data: URL; false unless it holds base64 of a known type,
// which DataURL writes the same.
func FromDataURL(url string) (mediaType string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", nil, false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok || mediaType == "" || text == "" {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return mediaType, data, err == nil
}
