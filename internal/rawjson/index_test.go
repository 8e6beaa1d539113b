package rawjson_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// large is an object and an array of n children each, past the size that is
// indexed; the last of two members of one key counts.
func large(n int) string {
	var object, array []string
	for i := range n {
		object = append(object, fmt.Sprintf(`"k\u00e9%d":{"v":%d}`, i, i))
		array = append(array, fmt.Sprintf(`"%s%d"`, strings.Repeat("x", 20), i))
	}
	return `{"o":{` + strings.Join(object, ",") + `,"ké7":"twice"},"a":[` + strings.Join(array, ",") + `],"small":[1,2]}`
}

func TestIndexed(t *testing.T) {
	t.Parallel()
	doc, err := rawjson.Parse(large(300), rawjson.Limits{})
	require.NoError(t, err)
	indexed := doc.Indexed()
	require.NotSame(t, doc, indexed)
	require.Same(t, indexed, indexed.Indexed())
	for _, pointer := range []string{"", "/o", "/o/ké0/v", "/o/ké7", "/o/ké299", "/o/ké300", "/o/0", "/a/0", "/a/299", "/a/300", "/a/01", "/a/-1", "/a/x", "/small/1", "/none/x"} {
		require.Equal(t, doc.Root().At(pointer).Raw(), indexed.Root().At(pointer).Raw(), pointer)
		require.Equal(t, doc.Root().At(pointer).Pointer(), indexed.Root().At(pointer).Pointer(), pointer)
	}
	require.Equal(t, `"twice"`, indexed.Root().Get("o").Get("ké7").Raw())
	require.False(t, rawjson.Value{}.Indexed().Exists())
	require.Equal(t, doc.Root().Get("a").Raw(), doc.Root().Get("a").Indexed().Raw())
	short, err := rawjson.Parse(`{"a":1}`, rawjson.Limits{})
	require.NoError(t, err)
	require.Same(t, short, short.Indexed(), "nothing to gain")
}

// Borrow reads what Parse reads, one document inside the use of another one
// included.
func TestBorrow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a":[1,{}],"a":null}`, `[]`, `{`, `1 2`, "\"\xff\"", ``, strings.Repeat("[", 100), large(10), strings.Repeat(" ", 2<<20)} {
		doc, wrong := rawjson.Parse(text, rawjson.Limits{})
		used := false
		err := rawjson.Borrow(text, rawjson.Limits{}, func(borrowed *rawjson.Doc) {
			used = true
			require.NoError(t, rawjson.Borrow(`{"other":[1,2,3]}`, rawjson.Limits{}, func(*rawjson.Doc) {}))
			require.Equal(t, doc.Root().Any(), borrowed.Root().Any())
			require.Len(t, borrowed.Duplicates(), len(doc.Duplicates()))
			require.Equal(t, doc.HoldsEmpty(), borrowed.HoldsEmpty())
		})
		require.Equal(t, wrong, err)
		require.Equal(t, wrong == nil, used)
	}
}

func TestHoldsEmpty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{`{}`: false, `[]`: false, `null`: false, `{"a":1}`: false, `{"a":""}`: false,
		`{"a":null}`: true, `{"a":{}}`: true, `[[ ]]`: true, `{"a":[{"b":0}]}`: false} {
		doc, err := rawjson.Parse(text, rawjson.Limits{})
		require.NoError(t, err)
		require.Equal(t, want, doc.HoldsEmpty(), text)
	}
}

// TestIndexedPointers: a value of an indexed document has the pointer of the same value without
// an index, and does not read its array from the start. It is not parallel, because other tests
// would be measured too.
func TestIndexedPointers(t *testing.T) {
	fastest := func(n int) time.Duration {
		doc, err := rawjson.Parse(`{"a": [`+strings.Repeat(`{"b": 12345678}, `, n)+`1]}`, rawjson.Limits{})
		require.NoError(t, err)
		doc = doc.Indexed()
		best := time.Hour
		for range 5 {
			start, i := time.Now(), 0
			for e := range doc.Root().Get("a").Each() {
				if e.Pointer() != "/a/"+strconv.Itoa(i) {
					t.Fatal(i, e.Pointer())
				}
				i++
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	require.Less(t, fastest(16_000), 100*fastest(1000), "16 times as many elements")
}
