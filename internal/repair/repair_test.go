package repair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/repair"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// A schema that was read before gives the same repair as the text of the schema.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	in := repair.Input{Tool: middleware.Tool{Parameters: []byte(`{"properties":{"a":{"type":"integer"}}}`)}, Arguments: `{"a":"1"}`,
		Issues:   []middleware.Issue{{Code: "type", Pointer: "/a"}},
		Rules:    repair.SetOf(repair.Coerce),
		Validate: func(args string) []middleware.Issue { return nil }}
	fixed, _, ok := repair.Arguments(in)
	require.True(t, ok)
	in.Schema = repair.ReadSchema(in.Tool.Parameters)
	in.Tool = middleware.Tool{}
	again, _, ok := repair.Arguments(in)
	require.True(t, ok)
	require.Equal(t, fixed, again)
}

// The rules of package mend have the numbers of those of package repair.
func TestRulesAreThoseOfMend(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[mend.Rule]repair.Rule{
		mend.Coerce: repair.Coerce, mend.Unwrap: repair.Unwrap, mend.Wrap: repair.Wrap, mend.Rename: repair.Rename,
		mend.DropUnknown: repair.DropUnknown, mend.Syntax: repair.Syntax, mend.ToolName: repair.ToolName, mend.Enum: repair.Enum,
		mend.Encode: repair.Encode, mend.RenameClose: repair.RenameClose, mend.Close: repair.Close, mend.Omit: repair.Omit,
		mend.Duplicates: repair.Duplicates, mend.Echo: repair.Echo, mend.Split: repair.Split, mend.EnumWords: repair.EnumWords,
		mend.FillDefaults: repair.FillDefaults,
	}, byNumber())
}

func byNumber() map[mend.Rule]repair.Rule {
	rules := map[mend.Rule]repair.Rule{}
	for _, r := range mend.All() {
		rules[r] = repair.Rule(r)
	}
	return rules
}
