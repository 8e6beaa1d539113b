package transport

import (
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestIDsAreBounded(t *testing.T) {
	t.Parallel()
	var m IDs
	require.True(t, m.empty())
	m.keep("", "")
	require.True(t, m.empty())
	for i := range mostIDs + 2 {
		m.keep(strconv.Itoa(i), "kept"+strconv.Itoa(i))
	}
	require.Len(t, m.stored, mostIDs)
	require.Len(t, m.order, mostIDs)
	require.Equal(t, "0", m.storedID("0"), "the oldest is forgotten first")
	require.Equal(t, "1", m.storedID("1"))
	require.Equal(t, "kept2", m.storedID("2"))
	require.Equal(t, "kept4097", m.storedID("4097"))
	m.keep("2", "again")
	require.Equal(t, "again", m.storedID("2"))
	require.Equal(t, "kept3", m.storedID("3"))
	long := strings.Repeat("x", longestIDs)
	m.keep(long, "kept")
	require.Equal(t, long, m.storedID(long), "not remembered")
}

// TestIDsKeepNoAnswer: an id is a view of the answer that it stands in.
func TestIDsKeepNoAnswer(t *testing.T) {
	t.Parallel()
	var m IDs
	given, kept := "the first answer"[4:9], "the second answer"[4:10]
	m.keep(given, kept)
	require.NotSame(t, unsafe.StringData(kept), unsafe.StringData(m.storedID(given)))
	require.NotSame(t, unsafe.StringData(given), unsafe.StringData(m.order[0]))
}
