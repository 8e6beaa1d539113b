package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// A re-ask leaves the bytes of the request alone but for one insertion, which
// is what the provider's prompt cache lives on.
func TestRecordedReaskIsOneInsertion(t *testing.T) {
	t.Parallel()
	f, seen := anthropic.Format{}, 0
	for _, x := range codectest.Load(t, "anthropic-messages") {
		if x.Status != 200 || !x.Has("calls") {
			continue
		}
		seen++
		req, err := f.DecodeRequest([]byte(x.Request))
		require.NoError(t, err, x.ID)
		resp, err := codec.Decode(f.NewStream(req, nil), []byte(x.Response))
		require.NoError(t, err, x.ID)
		verdicts := make([]middleware.Verdict, len(resp.Message.ToolCalls))
		for i, c := range resp.Message.ToolCalls {
			verdicts[i] = middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: "required"}}}
		}
		turn := batch.Turn(resp.Message, req.Tools, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "no" })
		body, err := f.EncodeRequest(req.With(turn...))
		require.NoError(t, err, x.ID)
		requireInsertion(t, x.Request, string(body))
	}
	require.NotZero(t, seen)
}

// requireInsertion fails unless after is before with one thing put in.
func requireInsertion(t *testing.T, before, after string) {
	t.Helper()
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	require.True(t, strings.HasSuffix(after[i:], before[i:]), "more than one insertion:\n%s\n%s", before, after)
}
