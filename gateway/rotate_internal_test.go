package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A full file that cannot be renamed does not grow, no older file is lost, and writing goes on when
// the reason is gone. The rename fails because a folder has the name.
func TestFullFileDoesNotGrow(t *testing.T) {
	t.Parallel()
	for blocked, older := range map[string]string{".0": "old\n", ".1": ""} {
		t.Run(blocked, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "calls.jsonl")
			if older != "" {
				require.NoError(t, os.WriteFile(file+".1", []byte(older), 0o600))
			}
			require.NoError(t, os.MkdirAll(filepath.Join(file+blocked, "x", "y"), 0o700))
			if blocked == ".1" { // nor can the folder
				require.NoError(t, os.MkdirAll(filepath.Join(file+".2", "x"), 0o700))
			}
			r, err := openRotated(file, 10, 3)
			require.NoError(t, err)
			failed := 0
			for range 20 {
				if _, err := r.Write([]byte("1234567\n")); err != nil {
					failed++
				}
				for _, name := range []string{file, file + ".0"} {
					if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
						require.LessOrEqual(t, info.Size(), int64(10))
					}
				}
			}
			require.Positive(t, failed)
			if blocked == ".1" { // the record of each good Write is in the file or in .0
				var all []byte
				for _, name := range []string{file, file + ".0"} {
					text, err := os.ReadFile(name)
					require.NoError(t, err)
					all = append(all, text...)
				}
				require.Equal(t, 20-failed, bytes.Count(all, []byte("\n")))
			}
			if older != "" {
				kept, err := os.ReadFile(file + ".1")
				require.NoError(t, err)
				require.Equal(t, older, string(kept))
			}
			for _, suffix := range []string{".0", ".1", ".2"} {
				if older == "" || suffix == ".0" {
					require.NoError(t, os.RemoveAll(file+suffix))
				}
			}
			_, err = r.Write([]byte("new\n"))
			require.NoError(t, err)
			_, err = r.Write([]byte("newer\n"))
			require.NoError(t, err)
			require.NoError(t, r.Close())
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(text), "newer\n")
		})
	}
}
