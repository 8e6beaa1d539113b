package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// images writes an OCI layout with an image for each Linux platform, in a tar. The image has the static binary and the root
// certificates of Mozilla, and nothing else.
func (r *release) images() error {
	dir, err := os.MkdirTemp("", "toolmend-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	roots, err := roots()
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range r.binaries {
		if b.goos != "linux" {
			continue
		}
		image, err := r.image(b, roots)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: b.goos, Architecture: b.goarch},
		}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// containerd and docker name the image after these.
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          "ghcr.io/toolmend/toolmend:" + r.version(),
		"org.opencontainers.image.ref.name": r.version(),
	})
	if err := path.AppendIndex(index, names); err != nil {
		return err
	}
	content, err := tree(dir, "", r.time)
	if err != nil {
		return err
	}
	return r.save("toolmend_"+r.version()+"_image.tar", content)
}

// image returns the image for one platform.
func (r *release) image(b binary, roots []byte) (v1.Image, error) {
	text, err := tarred([]file{
		{"etc/ssl/certs/ca-certificates.crt", roots, false},
		{"licenses/LICENSE", r.license, false},
		{"licenses/THIRD_PARTY_LICENSES", r.notices, false},
		{"toolmend", b.content, true},
	}, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.goos, b.goarch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:         "65532:65532",
		Entrypoint:   []string{"/toolmend"},
		Cmd:          []string{"serve", "--config", "/etc/toolmend/toolmend.toml"},
		ExposedPorts: map[string]struct{}{"7777/tcp": {}},
		WorkingDir:   "/",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/toolmend", "health", "--config", "/etc/toolmend/toolmend.toml"},
			Interval: 10 * time.Second, Timeout: 2 * time.Second,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "toolmend",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.source":      home,
			"org.opencontainers.image.licenses":    license,
			"org.opencontainers.image.version":     r.version(),
		},
	}
	return mutate.ConfigFile(image, config)
}

// roots returns the root certificates in PEM form, in the order of their bytes. A
// file cannot express that a root counts only for some certificates, so such roots are
// left out.
func roots() ([]byte, error) {
	var found [][]byte
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if _, err := x509.ParseCertificate(root.Certificate); err != nil {
			return nil, err
		}
		found = append(found, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	slices.SortFunc(found, bytes.Compare)
	return bytes.Join(found, nil), nil
}

// tree returns the files of a directory as a tar, below a prefix.
func tree(dir, prefix string, at time.Time) ([]byte, error) {
	files, err := filesOf(dir, prefix)
	if err != nil {
		return nil, err
	}
	return tarred(files, at)
}

// filesOf returns the files of a directory in the order of their names.
func filesOf(dir, prefix string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative := filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))
		files = append(files, file{prefix + relative, content, false})
		return nil
	})
	return files, err
}
