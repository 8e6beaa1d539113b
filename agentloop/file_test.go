package agentloop_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

func TestSaveFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "run.json")
	_, err := agentloop.LoadFile(name)
	require.ErrorIs(t, err, fs.ErrNotExist)

	for _, text := range []string{"first", "second"} {
		want := agentloop.NewState(middleware.User(text))
		require.NoError(t, agentloop.SaveFile(name, want))
		got, err := agentloop.LoadFile(name)
		require.NoError(t, err)
		require.Equal(t, want.Messages, got.Messages)
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(name, []byte(`{"version":99}`), 0o600))
	_, err = agentloop.LoadFile(name)
	require.ErrorIs(t, err, agentloop.ErrVersion)
}

// A save that fails leaves the old state, and nothing beside it.
func TestSaveFileFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.ErrorIs(t, agentloop.SaveFile(filepath.Join(dir, "none", "run.json"), agentloop.NewState()), fs.ErrNotExist)

	name := filepath.Join(dir, "run.json")
	require.NoError(t, os.MkdirAll(filepath.Join(name, "in the way"), 0o700))
	require.Error(t, agentloop.SaveFile(name, agentloop.NewState()))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A state made by hand has no version before it has run.
func TestSaveFileOfAStateMadeByHand(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state")
	require.NoError(t, agentloop.SaveFile(name, &agentloop.State{Messages: []middleware.Message{middleware.User("go")}}))
	s, err := agentloop.LoadFile(name)
	require.NoError(t, err)
	require.Len(t, s.Messages, 1)
}
