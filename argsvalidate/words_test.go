package argsvalidate_test

import (
	"encoding"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// A configuration file has the constants as words.
func TestWordsOfTheConstants(t *testing.T) {
	t.Parallel()
	words[middleware.OnExhausted](t, map[string]any{"default": middleware.OnExhausted(0), "pass": middleware.Pass, "raise": middleware.Raise, "drop": middleware.DropInvalid})
	words[argsvalidate.UnknownTools](t, map[string]any{"reject": argsvalidate.RejectUnknown, "pass": argsvalidate.PassUnknown})
	words[argsvalidate.UnusableSchemas](t, map[string]any{"reject": argsvalidate.RejectUnusable, "pass": argsvalidate.PassUnusable})
	words[argsvalidate.Constrain](t, map[string]any{"off": argsvalidate.NoConstraint, "named": argsvalidate.ConstrainNamed, "response-format": argsvalidate.ConstrainResponseFormat})
	words[strip.Mode](t, map[string]any{"optional": strip.Optional, "when-invalid": strip.WhenInvalid, "all": strip.All, "off": strip.Off})
	words[batch.Policy](t, map[string]any{"reissue-all": batch.ReissueAll, "keep-valid": batch.KeepValid})
}

func words[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, constants map[string]any) {
	for word, constant := range constants {
		require.Equal(t, word, fmt.Sprint(constant))
		text, err := constant.(encoding.TextMarshaler).MarshalText()
		require.NoError(t, err)
		require.Equal(t, word, string(text))
		var got T
		if err := P(&got).UnmarshalText([]byte(word)); word == "default" {
			require.ErrorContains(t, err, "must be one of")
		} else {
			require.NoError(t, err)
			require.Equal(t, constant, got)
		}
	}
}
