//go:build linux

package packages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// descriptor is an entry of an OCI index or manifest.
type descriptor struct {
	Digest   string
	Size     int
	Platform struct{ OS, Architecture string }
}

// image is one image of an OCI layout.
type image struct {
	config struct {
		OS, Architecture string
		Config           struct {
			User            string
			Entrypoint, Cmd []string
			Healthcheck     struct{ Test []string }
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	layers [][]byte
}

// blob returns a blob of a layout, and reads it as JSON into the value unless it is
// nil.
func blob(t *testing.T, layout map[string][]byte, d descriptor, into any) []byte {
	t.Helper()
	content := layout["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	require.Equal(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
	require.Len(t, content, d.Size)
	if into != nil {
		require.NoError(t, json.Unmarshal(content, into))
	}
	return content
}

// readImage returns the image for a processor.
func readImage(t *testing.T, layout map[string][]byte, cpu string) (found image) {
	t.Helper()
	var index struct{ Manifests []descriptor }
	require.NoError(t, json.Unmarshal(layout["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	blob(t, layout, index.Manifests[0], &index)
	require.Len(t, index.Manifests, 2)
	for _, d := range index.Manifests {
		if d.Platform.OS != "linux" || d.Platform.Architecture != cpu {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		blob(t, layout, d, &manifest)
		blob(t, layout, manifest.Config, &found.config)
		for i, layer := range manifest.Layers {
			z, err := gzip.NewReader(bytes.NewReader(blob(t, layout, layer, nil)))
			require.NoError(t, err)
			content, err := io.ReadAll(z)
			require.NoError(t, err)
			require.Equal(t, found.config.RootFS.DiffIDs[i], fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
			found.layers = append(found.layers, content)
		}
	}
	require.NotEmpty(t, found.layers)
	return found
}

// TestImage starts the image from its layers: its command as its user, in a root
// directory with nothing else.
func TestImage(t *testing.T) {
	text, err := os.ReadFile(packed(t, "toolmend_*_image.tar"))
	require.NoError(t, err)
	layout := unpack(t, text)
	readImage(t, layout, "arm64")
	i := readImage(t, layout, runtime.GOARCH)
	require.Equal(t, runtime.GOARCH, i.config.Architecture)
	require.Equal(t, "65532:65532", i.config.Config.User)

	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	for _, layer := range i.layers {
		tar := exec.CommandContext(t.Context(), "tar", "-xf", "-", "-C", root)
		tar.Stdin = bytes.NewReader(layer)
		text, err := tar.CombinedOutput()
		require.NoError(t, err, string(text))
	}
	roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	require.NoError(t, err)
	names := map[string]bool{}
	for block, rest := pem.Decode(roots); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		names[certificate.Subject.CommonName] = true
	}
	for _, name := range []string{"ISRG Root X1", "GTS Root R1", "DigiCert Global Root G2", "Amazon Root CA 1"} {
		require.True(t, names[name], name)
	}
	if os.Getuid() != 0 {
		t.Skip("not root: the image is not started")
	}

	// What a user mounts.
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc/toolmend"), 0o755))
	config := fmt.Sprintf("listen = \"127.0.0.1:7797\"\n[[upstream]]\nurl = %q\n", provider(t))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/toolmend/toolmend.toml"), []byte(config), 0o644))
	calls, err := os.ReadFile("../../../examples/check/calls.jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "calls.jsonl"), calls, 0o644))
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	entry := func(args ...string) *exec.Cmd {
		return inside(append(append([]string{}, i.config.Config.Entrypoint...), args...)...)
	}
	out, err := entry("version").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "toolmend v"+version(t))
	check := entry("check", "/calls.jsonl")
	_ = check.Run()
	require.Equal(t, 1, code(check))

	serve := entry(i.config.Config.Cmd...)
	said := lines(t, serve)
	await(t, said, `"msg":"ready"`)
	require.Equal(t, "CMD", i.config.Config.Healthcheck.Test[0])
	out, err = inside(i.config.Config.Healthcheck.Test[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	await(t, said, `"msg":"stopped"`)
	_ = serve.Wait()
	require.Zero(t, code(serve))
}

// helm is run by version, so that it is in no go.mod.
const helm = "helm.sh/helm/v3/cmd/helm@v3.22.0"

// TestChart lints and renders the chart, and starts the gateway with the configuration
// that it renders.
func TestChart(t *testing.T) {
	chart := packed(t, "helm/toolmend-*.tgz")
	run := func(args ...string) []byte {
		var errOut bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", helm}, args...)...)
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		require.NoError(t, err, "%s%s", out, errOut.String())
		return out
	}
	run("lint", "--strict", "--kube-version", "1.33", chart)
	text := run("template", "gate", chart, "--kube-version", "1.33", "--api-versions", "monitoring.coreos.com/v1",
		"--set", "serviceMonitor.enabled=true,env[0].name=NAME,env[0].value=value,podLabels.team=a")
	objects := map[string]map[string]any{}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object map[string]any
		err := decoder.Decode(&object)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		name := at(object, "metadata", "name").(string)
		objects[object["kind"].(string)+" "+name] = object
	}
	require.Len(t, objects, 6)

	pod := at(objects["Deployment gate-toolmend"], "spec", "template")
	container := at(pod, "spec", "containers", 0)
	require.Equal(t, "ghcr.io/toolmend/toolmend:"+version(t), at(container, "image"))
	require.Equal(t, "NAME", at(container, "env", 1, "name"))
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		require.Equal(t, "http", at(container, probe, "httpGet", "port"))
	}
	// Each selector finds what it is for.
	labels := at(pod, "metadata", "labels").(map[string]any)
	require.Equal(t, "a", labels["team"])
	for _, selector := range []any{
		at(objects["Deployment gate-toolmend"], "spec", "selector", "matchLabels"),
		at(objects["PodDisruptionBudget gate-toolmend"], "spec", "selector", "matchLabels"),
		at(objects["Service gate-toolmend"], "spec", "selector"),
		at(objects["Service gate-toolmend-admin"], "spec", "selector"),
	} {
		require.Subset(t, labels, selector)
	}
	monitor := objects["ServiceMonitor gate-toolmend"]
	selector := at(monitor, "spec", "selector", "matchLabels")
	require.Subset(t, at(objects["Service gate-toolmend-admin"], "metadata", "labels"), selector)
	require.NotSubset(t, at(objects["Service gate-toolmend"], "metadata", "labels"), selector)
	require.Equal(t, at(objects["Service gate-toolmend-admin"], "spec", "ports", 0, "name"), at(monitor, "spec", "endpoints", 0, "port"))

	// The gateway accepts the configuration, and answers where the probes and the monitor ask.
	p := newPlace(t)
	p.do(t, "tar", "-xzf", packed(t, "toolmend_*_linux_"+runtime.GOARCH+".tar.gz"))
	config := at(objects["ConfigMap gate-toolmend"], "data", "toolmend.toml").(string)
	file := filepath.Join(p.home, "toolmend.toml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	p.env = []string{"TOOLMEND_CLIENT_KEY=0123456789abcdef0123456789abcdef"}
	p.do(t, filepath.Join(p.home, "toolmend"), "serve", "--config", file, "--check-config")
	for _, port := range []string{"7777", "7778"} {
		require.Contains(t, config, "\"0.0.0.0:"+port+"\"")
	}
}

// at returns a value inside of maps and lists.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}
