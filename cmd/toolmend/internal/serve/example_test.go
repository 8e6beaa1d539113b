package serve

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

// TestExampleFile holds that docs/toolmend.toml is a configuration, also with
// all that is commented out, and that it has every key.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "..", "docs", "toolmend.toml")
	got := exec(t, t.TempDir(), "", "serve", "--config", path, "--check-config")
	require.Equal(t, cli.ExitOK, got.Code, got.ErrOut)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	whole := regexp.MustCompile(`(?m)^#([a-z_]+ = |\[)`).ReplaceAll(text, []byte("$1"))
	file := filepath.Join(t.TempDir(), "whole.toml")
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	c, _, err := readConfig(file)
	require.NoError(t, err)
	c.TLSCert, c.TLSKey = "", "" // the files are an example
	require.NoError(t, c.validate())

	var found []string
	for _, e := range entriesOf(whole) {
		found = append(found, regexp.MustCompile(`#\d+`).ReplaceAllString(e.path, ""))
	}
	for _, key := range keysOf(reflect.TypeFor[config](), "", false) {
		require.Contains(t, found, key)
	}
}

// keysOf returns the keys of a struct and those of the structs in it. Settings
// are left out below the first level, where they are the same.
func keysOf(s reflect.Type, prefix string, below bool) []string {
	var keys []string
	for f := range s.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch {
		case !f.IsExported():
		case f.Anonymous && below && f.Name == "Settings":
		case f.Anonymous:
			keys = append(keys, keysOf(f.Type, prefix, below)...)
		case inner.Kind() == reflect.Struct:
			keys = append(keys, keysOf(inner, prefix+name+".", true)...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

// TestKeysOf holds that keysOf finds keys at every depth.
func TestKeysOf(t *testing.T) {
	t.Parallel()
	keys := keysOf(reflect.TypeFor[config](), "", false)
	for _, key := range []string{"listen", "tls_cert", "mode", "limits.depth", "upstream.model.match", "upstream.tool.aliases", "upstream.headers.set", "record.file"} {
		require.Contains(t, keys, key)
	}
	require.NotContains(t, keys, "upstream.mode")
	require.Greater(t, len(keys), 50)
	require.Equal(t, keys, slices.Compact(slices.Clone(keys)))
}
