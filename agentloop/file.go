package agentloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// SaveFile writes s as JSON to the file name, with mode 0600. It writes a new
// file beside it, syncs it, renames it and syncs the folder, so that a crash
// leaves the old state or the new one, and a power cut after SaveFile the new
// one. One process at a time may write a file. Options.Checkpoint
// may be func(_ context.Context, s *State) error { return SaveFile(name, s) }.
func SaveFile(name string, s *State) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes a rename in the folder last. Windows has no such call, and
// needs none.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// LoadFile reads a state that SaveFile wrote. The error wraps fs.ErrNotExist
// where there is no such file, and ErrVersion or ErrState for a state that
// cannot go on.
func LoadFile(name string) (*State, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(State)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("agentloop: %s: %w", name, err)
	}
	return s, nil
}
