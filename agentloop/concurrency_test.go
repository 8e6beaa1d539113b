package agentloop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// scripted is a model without state: it calls weather twice in each of n turns
// and then answers. What it says depends on the question.
func scripted(n int) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		question, turns := req.Messages[0].Text(), 0
		for _, m := range req.Messages {
			if m.Role == middleware.RoleAssistant {
				turns++
			}
		}
		resp := &middleware.Response{Message: middleware.Assistant("answer to " + question), Usage: middleware.Usage{InputTokens: 1}}
		if turns < n {
			args := fmt.Sprintf(`{"city":%q}`, question)
			resp.Message = middleware.Assistant("", call(fmt.Sprintf("a%d", turns), "weather", args), call(fmt.Sprintf("b%d", turns), "weather", args))
		}
		return resp, nil
	}
}

// One agent serves 1,000 runs at once, and none sees another's.
func TestThousandRuns(t *testing.T) {
	t.Parallel()
	a := newAgent(t, argsvalidate.New(argsvalidate.Options{})(scripted(2)), tools(weather()))
	var wg sync.WaitGroup
	states := make([]*agentloop.State, 1000)
	errs := make([]error, len(states))
	for i := range states {
		wg.Go(func() {
			states[i] = agentloop.NewState(middleware.User(fmt.Sprint("city ", i)))
			errs[i] = a.Run(t.Context(), states[i])
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for i, s := range states {
		require.NoError(t, errs[i])
		require.Equal(t, fmt.Sprint("answer to city ", i), s.Answer())
		require.Equal(t, fmt.Sprint("sunny in city ", i), s.Results[3].Text)
		require.Len(t, s.Messages, 8)
		ids[s.RunID] = true
	}
	require.Len(t, ids, len(states))
}

// BenchmarkLoop is what the loop costs for one step: a model call that does
// nothing, with two calls of a typed tool. The ratio says how much more that is
// than the model and the tools alone.
func BenchmarkLoop(b *testing.B) {
	const turns = 10
	tool, model := weather(), scripted(turns)
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			messages := []middleware.Message{middleware.User("Oslo")}
			for range turns + 1 {
				resp, _ := model(b.Context(), &middleware.Request{Messages: messages})
				messages = append(messages, resp.Message)
				for _, c := range resp.Message.ToolCalls {
					r, _ := tool.Func(b.Context(), c)
					messages = append(messages, middleware.ToolReply(c, r.Text))
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(turns+1), "ns/step")
	})
	for name, layers := range map[string]middleware.Middleware{"loop": middleware.Chain(), "loop+argsvalidate": argsvalidate.New(argsvalidate.Options{})} {
		b.Run(name, func(b *testing.B) {
			a := newAgent(b, layers(model), tools(tool))
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Run(b.Context(), agentloop.NewState(middleware.User("Oslo"))); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(turns+1), "ns/step")
		})
	}
}
