package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"time"
)

// file is one file of an archive. Those that run have mode 0755.
type file struct {
	name    string
	content []byte
	runs    bool
}

func (f file) mode() int64 {
	if f.runs {
		return 0o755
	}
	return 0o644
}

// tarred returns the files as a tar, all of one time and of the user 0.
func tarred(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: f.mode(), ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// tgz returns the files as a compressed tar.
func tgz(files []file, at time.Time) ([]byte, error) {
	text, err := tarred(files, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// zipped returns the files as a zip.
func zipped(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(f.mode()))
		to, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// archives writes a .tar.gz for each platform, a .zip for Windows.
func (r *release) archives() error {
	readme, err := os.ReadFile(filepath.Join(r.root, "README.md"))
	if err != nil {
		return err
	}
	example, err := os.ReadFile(filepath.Join(r.root, "docs", "toolmend.toml"))
	if err != nil {
		return err
	}
	for _, b := range r.binaries {
		pack, extension := tgz, ".tar.gz"
		if b.goos == "windows" {
			pack, extension = zipped, ".zip"
		}
		content, err := pack([]file{
			{"LICENSE", r.license, false},
			{"README.md", readme, false},
			{"THIRD_PARTY_LICENSES", r.notices, false},
			{b.command(), b.content, true},
			{"toolmend.toml.example", example, false},
		}, r.time)
		if err != nil {
			return err
		}
		if err := r.save(r.name(b.platform)+extension, content); err != nil {
			return err
		}
	}
	return nil
}
