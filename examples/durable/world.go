package main

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// world is a directory in which tools have their effects: a file for each
// idempotency key.
type world string

func newWorld(dir string) (world, error) {
	w := filepath.Join(dir, "world")
	return world(w), os.MkdirAll(w, 0o700)
}

// once has an effect, unless it has happened already. The file gets its name only
// when it is whole.
func (w world) once(key, what string) error {
	temporary := filepath.Join(string(w), "."+rand.Text())
	if err := os.WriteFile(temporary, fmt.Appendf(nil, "process %d: %s", os.Getpid(), what), 0o600); err != nil {
		return err
	}
	defer os.Remove(temporary)
	err := os.Link(temporary, filepath.Join(string(w), fmt.Sprintf("%x", sha256.Sum256([]byte(key)))))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// effects are what has happened, the oldest first.
func (w world) effects() ([]string, error) {
	type effect struct {
		at   time.Time
		text string
	}
	files, err := os.ReadDir(string(w))
	if err != nil {
		return nil, err
	}
	var all []effect
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(string(w), f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, effect{info.ModTime(), string(text)})
	}
	slices.SortFunc(all, func(a, b effect) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.text, b.text)) })
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.text
	}
	return texts, nil
}

// watcher prints what happens in the world.
type watcher struct {
	out   io.Writer
	world world
	seen  int
}

func (w *watcher) show() error {
	all, err := w.world.effects()
	for _, text := range all[min(w.seen, len(all)):] {
		fmt.Fprintln(w.out, text)
	}
	w.seen = max(w.seen, len(all))
	return err
}
