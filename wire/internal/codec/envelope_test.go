package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	call := codec.Envelope{{Key: "id"}, {Key: "functionCall", Other: "function_call", In: codec.Envelope{{Key: "name"}, {Key: "args"}}}}
	root := codec.Envelope{{Key: "tasks", In: call}}
	for name, c := range map[string]struct {
		body string
		bad  bool
	}{
		"plain":                         {`{"tasks":[{"id":1,"functionCall":{"name":"a","args":{}}}]}`, false},
		"one object for a list":         {`{"tasks":{"id":1,"ID":2}}`, true},
		"twice":                         {`{"tasks":[],"tasks":[]}`, true},
		"twice with the same value":     {`{"tasks":[{"id":1,"id":1}]}`, true},
		"twice by an escape":            {`{"tasks":[],"task\u0073":[]}`, true},
		"a twin alone":                  {`{"Tasks":[]}`, true},
		"a twin by an escape":           {`{"\u0054asks":[]}`, true},
		"a twin beside it":              {`{"tasks":[{"id":1},{"id":1,"iD":2}]}`, true},
		"a twin that is longer":         {"{\"tas\u212As\":1}", true},
		"a twin that is longer, s":      {"{\"task\u017f\":1}", true},
		"another word of that length":   {`{"tacks":[{"di":1}]}`, false},
		"deeper":                        {`{"tasks":[{"functionCall":{"name":"a","args":{},"Args":{}}}]}`, true},
		"two spellings":                 {`{"tasks":[{"functionCall":{},"function_call":{}}]}`, true},
		"the other spelling":            {`{"tasks":[{"function_call":{"name":"a","Name":"b"}}]}`, true},
		"a twin of the other":           {`{"tasks":[{"Function_call":{}}]}`, true},
		"in arguments":                  {`{"tasks":[{"functionCall":{"name":"a","args":{"ID":1,"id":1,"id":2,"name":1,"Name":2}}}]}`, false},
		"unknown members":               {`{"x":1,"x":2,"X":3,"usage":{"tasks":1,"tasks":2,"Tasks":3},"tasks":[{"y":1,"y":2}]}`, false},
		"values of other kinds":         {`{"tasks":[1,null,[{"id":1,"id":2}],{"functionCall":7}]}`, false},
		"a key that is empty, twice":    {`{"":1,"":2,"tasks":[{"":1,"":2}]}`, false},
		"a key that is not ASCII":       {`{"tåsks":1}`, false},
		"a key that is not UTF-8":       {"{\"task\xff\":1}", false},
		"a key that ends in half of it": {"{\"task\xc5\":1}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := codec.Parse(c.body)
			require.NoError(t, err)
			err = root.Check(doc.Root())
			if !c.bad {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
}
