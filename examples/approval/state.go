package main

import (
	"errors"
	"io/fs"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// load reads the run from its file, or starts one.
func load(file string) (*agentloop.State, error) {
	if file != "" {
		s, err := agentloop.LoadFile(file)
		if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return agentloop.NewState(middleware.User("Pay the rent, the power and the phone.")), nil
}

// save writes the run to its file, if it has one.
func save(file string, s *agentloop.State) error {
	if file == "" {
		return nil
	}
	return agentloop.SaveFile(file, s)
}
