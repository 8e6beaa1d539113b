package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// load reads the run from its file, or starts one.
func load(file string) (*agentloop.State, error) {
	b, err := os.ReadFile(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return agentloop.NewState(middleware.User("Pay the rent, the power and the phone.")), nil
	}
	s := new(agentloop.State)
	if err == nil {
		err = json.Unmarshal(b, s)
	}
	return s, err
}

// save writes the run beside its file first, so that a crash leaves the old
// state or the new one.
func save(file string, s *agentloop.State) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
