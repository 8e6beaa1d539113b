package codec_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

// A new field of a type must be compared, or be named here: a change that no
// comparison sees would silently not be written.
func TestEveryFieldIsCompared(t *testing.T) {
	t.Parallel()
	compare(t, codec.SameCall, "Native", "Namespace")
	compare(t, codec.SamePart, "Native")
	compare(t, codec.SameMessage, "Native")
	compare(t, codec.SameTool, "Native", "Decode", "Destructive", "Namespace", "Loads")
	byValue(t, codec.SameRequest, "Native", "Params", "Header", "Sink", "Client") // Params are for fresh requests; Header, Sink and Client are in no body
	byValue(t, codec.SameResponse, "Native", "Report", "ID", "Unpaired")
}

func byValue[T any](t *testing.T, same func(a, b *T) bool, ignored ...string) {
	t.Helper()
	compare(t, func(a, b T) bool { return same(&a, &b) }, ignored...)
}

func compare[T any](t *testing.T, same func(a, b T) bool, ignored ...string) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	for i := range typ.NumField() {
		if !typ.Field(i).IsExported() { // no codec can write it
			continue
		}
		var zero, set T
		fill(reflect.ValueOf(&set).Elem().Field(i))
		require.Equal(t, slices.Contains(ignored, typ.Field(i).Name), same(zero, set), "%s.%s", typ, typ.Field(i).Name)
	}
	for _, name := range ignored {
		_, ok := typ.FieldByName(name)
		require.True(t, ok, "%s has no %s", typ, name)
	}
}

// fill sets v to something that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), nil))
	case reflect.Struct:
		fill(v.Field(0))
	}
}
