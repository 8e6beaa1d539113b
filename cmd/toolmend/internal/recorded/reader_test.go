package recorded

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// all reads everything: lines as "n text", errors as their text.
func all(r *Reader) (out []string) {
	for l, err := range r.All() {
		if err != nil {
			out = append(out, err.Error())
		} else {
			out = append(out, string(rune('0'+l.N))+" "+string(l.Text))
		}
	}
	return out
}

func TestReaderLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":            {"", nil},
		"blank lines":      {"\n a \r\n\n\nb", []string{"2 a", "5 b"}},
		"last line ended":  {"a\nb\n", []string{"1 a", "2 b"}},
		"byte order mark":  {"\xef\xbb\xbfa\n\xef\xbb\xbfb", []string{"1 a", "2 \xef\xbb\xbfb"}},
		"one byte of gzip": {"\x1f", []string{"1 \x1f"}},
		"array":            {"\n[{\"a\":\n1},\n\n {\"b\":2} , 3]\n", []string{"2 {\"a\":\n1}", "5 {\"b\":2}", "5 3"}},
		"array on a line":  {`[1, 2]`, []string{"1 1", "1 2"}},
		"empty array":      {" []", nil},
		"array, cut off":   {"[1,\n2", []string{"1 1", "2 2", "f:2: not JSON: the file ends in the middle of a record or an array"}},
		"array, not JSON":  {"[1,\nx]", []string{"1 1", "f:1: invalid character 'x' looking for beginning of value"}},
		"array and more":   {"[1] 2", []string{"1 1", "1 2"}},
		"pretty objects":   {"{\n\"a\":1\n}\n{\n}\n", []string{"1 {\n\"a\":1\n}", "4 {\n}"}},
		"pretty, cut off":  {"{\n\"a\":", []string{"f:1: not JSON: the file ends in the middle of a record or an array"}},
		"object on lines":  {"{\"a\": [\n1]}\n{\"b\":2}\n", []string{"1 {\"a\": [\n1]}", "3 {\"b\":2}"}},
		"a brace later":    {"1\n{\n", []string{"1 1", "2 {"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, all(NewReader("f", strings.NewReader(c.text))))
			require.Equal(t, c.want, all(NewReader("f", iotest.OneByteReader(strings.NewReader(c.text)))))
			require.Equal(t, c.want, all(NewReader("f", bytes.NewReader(zipped(t, c.text)))), "gzip")
		})
	}
}

func TestReaderLongLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20<<20)
	got := all(NewReader("f", strings.NewReader(long+"\nb\n")))
	require.Len(t, got[0], len("1 "+long))
	require.Equal(t, "2 b", got[1])
}

// A line past the limit is not kept, and those after it have their numbers.
func TestReaderTooLongLine(t *testing.T) {
	t.Parallel()
	r := NewReader("f", strings.NewReader("a\n"+strings.Repeat("x", 200_000)+"\nb\n"+strings.Repeat("y", 200_000)))
	r.max = 100_000
	require.Equal(t, []string{
		"1 a", "f:2: the line is too long: more than 100000 bytes", "3 b", "f:4: the line is too long: more than 100000 bytes",
	}, all(r))
}

func TestReaderErrors(t *testing.T) {
	t.Parallel()
	whole := zipped(t, "a\nb\n")
	require.Equal(t, []string{"1 a", "2 b", "f:3: the compressed file ends in the middle: unexpected EOF"},
		all(NewReader("f", bytes.NewReader(whole[:len(whole)-4]))))
	require.Equal(t, []string{"f: gzip: invalid header"}, all(NewReader("f", strings.NewReader("\x1f\x8bno gzip at all"))))
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("boom")))
	require.Equal(t, []string{"1 a", "f:2: boom"}, all(NewReader("f", broken)))
}
