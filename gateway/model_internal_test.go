package gateway

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/transport"
)

func gzipped(t *testing.T, text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

var gunzip = map[string]transport.Decoder{"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}

// TestModelOf: a model that cannot be read is an error. The request could otherwise reach an
// upstream that its model does not belong to.
func TestModelOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`\u0041`, 2*maxString)
	for name, c := range map[string]struct {
		path, encoding, body string
		want                 string
		err                  error
	}{
		"plain":             {body: `{"model":"m","messages":[{"model":"other"}]}`, want: "m"},
		"last":              {body: `{"system":"a \" {","tools":[{"a":[1,{}]},"]"],"model":"m"}`, want: "m"},
		"escaped key":       {body: `{"mod\u0065l":"m"}`, want: "m"},
		"another case":      {body: `{"Model":"m"}`, want: "m"},
		"behind long texts": {body: `{"` + long + `":1,"system":"` + long + `\\","model":"m"}`, want: "m"},
		"none":              {body: `{"messages":[]}`},
		"null":              {body: `{"model":null}`},
		"path":              {path: "/v1beta/models/g:generateContent", body: `{`, want: "g"},
		"gzip":              {encoding: "gzip", body: gzipped(t, `{"model":"m"}`), want: "m"},
		"GZIP":              {encoding: " GZIP", body: gzipped(t, `{"model":"m"}`), want: "m"},
		"identity":          {encoding: "identity", body: `{"model":"m"}`, want: "m"},
		"other path":        {path: "/v1/embeddings", body: `{`},
		"twice":             {body: `{"model":"m","model":"n"}`, err: errModel},
		"twice by case":     {body: `{"model":"m","MODEL":"n"}`, err: errModel},
		"unknown encoding":  {encoding: "br", body: `{"model":"m"}`, err: errModel},
		"two encodings":     {encoding: "gzip, gzip", body: `{"model":"m"}`, err: errModel},
		"not gzip":          {encoding: "gzip", body: `{"model":"m"}`, err: errModel},
		"broken gzip":       {encoding: "gzip", body: gzipped(t, `{"model":"m"}`)[:20], err: errModel},
		"not JSON":          {body: `model=m`, err: errModel},
		"no object":         {body: `["model"]`, err: errModel},
		"cut":               {body: `{"model":"m"`, err: errModel},
		"two texts":         {body: `{"model":"m"} {"model":"n"}`, err: errModel},
		"UTF-16":            {body: "{\x00\"\x00", err: errModel},
		"many members":      {body: `{"model":"m"` + strings.Repeat(`,"":0`, maxMembers) + `}`, err: errModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &state{decoders: gunzip, memory: &transport.Memory{}}
			if c.path == "" {
				c.path = "/v1/messages"
			}
			r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
			r.Header.Set("Content-Encoding", c.encoding)
			model, r, err := s.modelOf(httptest.NewRecorder(), r)
			require.Equal(t, c.err, err)
			require.Equal(t, c.want, model)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body))
		})
	}
}

// TestModelInALargeBody: a body past the limit is refused, also if only its text is.
func TestModelInALargeBody(t *testing.T) {
	t.Parallel()
	s, text := &state{decoders: gunzip, memory: &transport.Memory{}}, `{"model":"m","a":"`+strings.Repeat("a", 1<<16)+`"}`
	for encoding, body := range map[string]string{"": text, "gzip": gzipped(t, text)} {
		_, err := s.modelIn([]byte(body), encoding, 1<<16)
		require.Equal(t, errModel, err)
		model, err := s.modelIn([]byte(body), encoding, 1<<17)
		require.NoError(t, err)
		require.Equal(t, "m", model)
	}
}

// TestModelMemory: the model is found without a tree of the body.
func TestModelMemory(t *testing.T) {
	t.Parallel()
	bomb := gzipped(t, `{"messages":[`+strings.Repeat("0,", 10<<20)+`0],"model":"m"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	model, err := (&state{decoders: gunzip, memory: &transport.Memory{}}).modelIn([]byte(bomb), "gzip", maxModelBody)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, "m", model)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "other tests of the package run at the same time")
}

// TestTopLevel: the text has the same members as the whole, whatever is in them.
func TestTopLevel(t *testing.T) {
	t.Parallel()
	value := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{`1`, `"a"`, `"\"{"`, `"\\"`, `[]`, `{}`, `[{"model":"x"},"]}"]`, `{"a":{"b":["\"}"]}}`, `null`, `"` + strings.Repeat("é\\n", maxString) + `"`}).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		text, keys := "{", []string(nil)
		for i, v := range rapid.SliceOf(value).Draw(t, "values") {
			if i > 0 {
				text += ","
			}
			key := rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "key")
			keys = append(keys, key)
			text += ` "` + key + `" : ` + v
		}
		out, err := topLevel(strings.NewReader(text+"}"), maxModelBody)
		require.NoError(t, err)
		doc, err := rawjson.Parse(string(out), rawjson.Limits{AnyBytes: true})
		require.NoError(t, err, "%s", out)
		var got []string
		for m := range doc.Root().Each() {
			got = append(got, m.Key())
		}
		require.Equal(t, keys, got)
	})
}
