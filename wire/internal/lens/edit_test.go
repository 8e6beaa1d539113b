package lens_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// A member and a list are added to one object: each has its comma.
func ExampleEdit() {
	v, _ := codec.ParseObject(`{"message": {}, "list": [ 1 ]}`)
	e := plain.Edit(v)
	e.Put(lens.Text("message/content", "Hi"))
	e.Elements("message/calls", []string{"2"})
	e.Elements("list", []string{"1", "3"})
	out, err := e.Text()
	fmt.Println(out, err)
	// Output: {"message": {"content":"Hi","calls":[2]}, "list": [ 1,3 ]} <nil>
}

func TestEdit(t *testing.T) {
	t.Parallel()
	v := object(t, `{"a": {"l": [1]}, "a": {"l": [ 2 ]}}`)
	e := plain.Edit(v)
	e.Elements("a/l", []string{"2"})
	e.Elements("b/l", nil)
	out, err := e.Text()
	require.NoError(t, err)
	require.Equal(t, v.Raw(), out)
	e.Elements("a/l", []string{"3"})
	_, err = e.Text()
	require.ErrorIs(t, err, codec.ErrUnencodable, "a appears twice")

	e = plain.Edit(object(t, `{"l":null,"a":{"l":null},"x":1}`))
	e.Elements("l", nil)
	e.Elements("a/l", nil)
	e.Put(lens.Raw("x", "2"))
	out, err = e.Text()
	require.NoError(t, err)
	require.Equal(t, `{"l":null,"a":{"l":null},"x":2}`, out, "null stays")
	e.Elements("a/l", []string{"3"})
	out, err = e.Text()
	require.NoError(t, err)
	require.Equal(t, `{"l":null,"a":{"l":[3]},"x":2}`, out)

	e = plain.Edit(object(t, `{"a": {"l": [1, 2]}, "x": 1}`))
	e.Elements("a/l", []string{"2"})
	e.Put(lens.None("x"), lens.Text("a/m", "y"))
	out, err = e.Text()
	require.NoError(t, err)
	require.Equal(t, `{"a": {"l": [2],"m":"y"}}`, out)
	e.Add(nil, codec.Unencodablef("no place"))
	_, err = e.Edits()
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestTools(t *testing.T) {
	t.Parallel()
	one := middleware.Tool{Name: "one", Native: plain.Native(`{"name":"one"}`)}
	two := middleware.Tool{Name: "two", Native: plain.Native(`{"name":"two"}`)}
	changed := two
	changed.Description = "D"
	var asked []string
	texts, at, err := plain.Tools([]middleware.Tool{one, two}, []middleware.Tool{changed, one, {Name: "new"}}, func(t middleware.Tool) (string, error) {
		asked = append(asked, t.Name)
		return "<" + t.Name + ">", nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"<two>", `{"name":"one"}`, "<new>"}, texts)
	require.Equal(t, []int{1, 0, -1}, at)
	require.Equal(t, []string{"two", "new"}, asked)
	_, _, err = plain.Tools(nil, []middleware.Tool{one}, func(middleware.Tool) (string, error) { return "", codec.ErrUnencodable })
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestWithParams(t *testing.T) {
	t.Parallel()
	members := []lens.Member{lens.Text("model", "m"), lens.Raw("o/t", "1"), lens.None("o/n"), lens.None("none"), lens.Raw("p/q", "2")}
	for params, want := range map[string]string{
		``:                                     `{"model":"m","o":{"t":1},"p":{"q":2}}`,
		`{}`:                                   `{"model":"m","o":{"t":1},"p":{"q":2}}`,
		`{"x/y":1,"model":"n","x/y":2}`:        `{"model":"n","x/y":2,"o":{"t":1},"p":{"q":2}}`,
		`{"o":{"s":3, "t":4},"none":0}`:        `{"o":{"s":3,"t":4},"none":0,"model":"m","p":{"q":2}}`,
		`{"o":{"n":5},"p":null}`:               `{"o":{"n":5,"t":1},"p":{"q":2},"model":"m"}`,
		`{"tool_config":{"a":1},"o":{"t":{}}}`: `{"tool_config":{"a":1},"o":{"t":{}},"model":"m","p":{"q":2}}`,
		`{"model":null}`:                       `{"model":null,"o":{"t":1},"p":{"q":2}}`,
	} {
		got, err := plain.WithParams(members, []byte(params))
		require.NoError(t, err)
		require.Equal(t, want, got, params)
	}
	got, err := both.WithParams([]lens.Member{lens.Text("toolConfig/mode", "x")}, []byte(`{"tool_config":{"a":1}}`))
	require.NoError(t, err)
	require.Equal(t, `{"tool_config":{"a":1,"mode":"x"}}`, got)
	for _, bad := range []string{`[]`, `{`, `{"o":5}`, `{"p":[{"q":3}]}`} {
		_, err := plain.WithParams(members, []byte(bad))
		require.ErrorIs(t, err, codec.ErrUnencodable)
	}
}
