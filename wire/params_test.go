package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// settled is a request with settings, which some formats write into an object of
// its own.
func settled() *middleware.Request {
	req, warm := question(), 0.5
	req.MaxTokens, req.Temperature = 7, &warm
	return req
}

// Where Params has something else than an object for settings to go into, they
// are not lost in silence. null is like no object.
func TestParamsTakeNoSettingAway(t *testing.T) {
	t.Parallel()
	shared := map[string]string{"gemini": "systemInstruction generationConfig", "ollama": "options"}
	for name, p := range providers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := p.codec.EncodeRequest(settled())
			require.NoError(t, err)
			doc, err := rawjson.Parse(string(plain), rawjson.Limits{Bytes: -1, Depth: -1, Number: -1, Exponent: -1})
			require.NoError(t, err)
			var objects []string
			for v := range doc.Root().Each() {
				if v.Kind() != rawjson.Object {
					continue
				}
				objects = append(objects, v.Key())
				for _, other := range []string{`5`, `"x"`, `[]`, `[{}]`} {
					req := settled()
					req.Params = []byte(`{"` + v.Key() + `":` + other + `}`)
					_, err := p.codec.EncodeRequest(req)
					require.ErrorIs(t, err, wire.ErrUnencodable, "%s", req.Params)
				}
				req := settled()
				req.Params = []byte(`{"` + v.Key() + `":null}`)
				out, err := p.codec.EncodeRequest(req)
				require.NoError(t, err)
				require.JSONEq(t, string(plain), string(out))
			}
			require.Equal(t, shared[name], strings.Join(objects, " "))
		})
	}
}

// A list that is null stays null when something else changes.
func TestNullListStays(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, p provider) {
		req := settled()
		req.Tools = nil
		body, err := p.codec.EncodeRequest(req)
		require.NoError(t, err)
		with := strings.TrimSuffix(string(body), "}") + `,"tools":null}`
		req, err = p.codec.DecodeRequest([]byte(with))
		require.NoError(t, err)
		req.Messages[len(req.Messages)-1] = middleware.User("And in Bergen?")
		req.MaxTokens = 8
		out, err := p.codec.EncodeRequest(req)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(out), `,"tools":null}`), string(out))
		require.Contains(t, string(out), "Bergen")
	})
}
