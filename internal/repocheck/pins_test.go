package repocheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	usedAction = regexp.MustCompile(`uses: (.+)`)
	pinned     = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	usedImage  = regexp.MustCompile(`image: (ghcr\.io/toolmend/toolmend:.+)`)
	released   = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`)
)

// TestPins holds that workflows name the actions by commit, with the version as a comment, and
// that manifests run the last release.
func TestPins(t *testing.T) {
	t.Parallel()
	all := open(t, "../..")
	version := released.FindStringSubmatch(all.read(t, "CHANGELOG.md"))[1]
	actions, images := 0, 0
	for _, file := range all.files {
		switch {
		case strings.HasPrefix(file, ".github/workflows/"):
			for _, action := range usedAction.FindAllStringSubmatch(all.read(t, file), -1) {
				require.Regexp(t, pinned, action[1], file)
				actions++
			}
		case strings.HasPrefix(file, "deploy/kubernetes/"):
			for _, image := range usedImage.FindAllStringSubmatch(all.read(t, file), -1) {
				require.Equal(t, "ghcr.io/toolmend/toolmend:"+version, image[1], file)
				images++
			}
		}
	}
	require.NotZero(t, actions)
	require.NotZero(t, images)
}
