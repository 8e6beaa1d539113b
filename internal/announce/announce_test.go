package announce_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/announce"
	"github.com/toolmend/toolmend/middleware"
)

// request returns a request of both clients, with texts that announce tools.
func request(texts ...string) *middleware.Request {
	req := &middleware.Request{Tools: []middleware.Tool{{Name: "ToolSearch"}, {Name: "tool_search"}, {Name: "tool_call"}}}
	for _, text := range texts {
		req.Messages = append(req.Messages, middleware.System(text))
	}
	return req
}

func reminder(content string) middleware.Message {
	return middleware.Message{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "<system-reminder>\n" + content + "\n</system-reminder>"}, {Text: "go"}}}
}

func has(t *testing.T, req *middleware.Request, name string) bool {
	ok, err := announce.New(req).Has(t.Context(), name)
	require.NoError(t, err)
	return ok
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		names []string
		other []string
	}{
		{"Call a_b, c.d_e and f:g_h.", []string{"a_b", "c.d_e", "f:g_h"}, []string{"c", "d_e", "g_h", "Call", "and", "_b", ""}},
		{"(a_b) 'c_d' …e_f… /g_h/ ./i_j k_l: m_n.", []string{"a_b", "c_d", "e_f", "g_h", "i_j", "k_l", "m_n"}, []string{"/g_h", "i_j k_l"}},
		{"see a_b://c_d and x::y_z", []string{"a_b", "a_b://c_d", "x::y_z"}, []string{"c_d", "y_z", "x"}},
		{"search", []string{"search"}, nil},
		{"search the web", nil, []string{"search", "the", "web"}},
		{"`search` the web", []string{"search"}, []string{"web"}},
		{"- search: the web", []string{"search"}, []string{"web"}},
		{"use  search .", nil, []string{"search"}},
		{"use it\nsearch\nnow", []string{"search", "now"}, []string{"use", "it"}},
		{"der Befehl größe_ändern, später", []string{"größe_ändern"}, []string{"größe", "Befehl"}},
		{"\nmcp__mail__* (42)\nmcp__a_b__* (1", []string{"mcp__mail__send", "mcp__a_b__c__d"}, []string{"mcp__mail__*", "mcp__other__send", "mcp__mail", "mcp__mail__s end"}},
		{"mcp__mail__* (42)", nil, []string{"mcp__mail__send"}},
		{"\nmcp__mail__*(42)\n mcp__a__* (3)", nil, []string{"mcp__mail__send", "mcp__a__x"}},
	} {
		for _, name := range c.names {
			require.True(t, has(t, request(c.text), name), "%q in %q", name, c.text)
		}
		for _, name := range c.other {
			require.False(t, has(t, request(c.text), name), "%q in %q", name, c.text)
		}
	}
}

func TestLoader(t *testing.T) {
	t.Parallel()
	const list = "The following deferred tools are now available via ToolSearch:\nCronList"
	require.Empty(t, announce.New(request("no announcement")).Loader(t.Context()))
	require.Equal(t, "ToolSearch", announce.New(request(list)).Loader(t.Context()))
	require.Empty(t, announce.New(&middleware.Request{Messages: request(list).Messages}).Loader(t.Context()), "the tool is not in the request")
	qwen := request()
	qwen.Messages = append(qwen.Messages, reminder("The following tools are reachable through `tool_search` and `tool_call`. \n- \"cron_list\""))
	require.Equal(t, "tool_search", announce.New(qwen).Loader(t.Context()))
	qwen.Tools = append(qwen.Tools, middleware.Tool{Name: "search_regex", Kind: middleware.KindHosted, Loads: middleware.LoadsFound})
	require.Equal(t, "search_regex", announce.New(qwen).Loader(t.Context()))
}

// TestLinear: 1 MB of anything takes a moment. Quadratic work would take an hour.
func TestLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"search", "x", "search ", "search.", "search:/", "a_b", " ", "\n", ".", "mcp__x__", "\nmcp__x__* (", "ä", "\xff", "* (", "<system-reminder>\n", "- \"a_b\"\n"} {
		text := strings.Repeat(piece, 1_000_000/len(piece))
		req := request(text)
		req.Messages = append(req.Messages, reminder("The following tools are reachable through `tool_search` and `tool_call`. \n"+text), reminder(text))
		tools, start := announce.New(req), time.Now()
		for _, name := range []string{"search", "x", "searchsearch", "mcp__x__y", "mcp__z__y", "nothing"} {
			_, err := tools.Has(t.Context(), name)
			require.NoError(t, err)
		}
		tools.Loader(t.Context())
		require.Less(t, time.Since(start), 10*time.Second, "%q", piece)
	}
}

// ending is a context that ends when it has been asked n times.
type ending struct {
	context.Context
	asked, n int
}

func (c *ending) Err() error {
	if c.asked++; c.asked > c.n {
		return context.Canceled
	}
	return nil
}

// The request is read no further when the context has ended, and anew the next time.
func TestCancellation(t *testing.T) {
	t.Parallel()
	qwen := reminder("The following tools are reachable through `tool_search` and `tool_call`. " + strings.Repeat("\n- \"a_b\"", 1000))
	for name, req := range map[string]*middleware.Request{
		"lines": request(strings.Repeat("a_b\n", 1000) + "last_one"),
		"texts": request(append(strings.Split(strings.Repeat("a_b ", 1000), " "), "last_one")...),
		"rows":  {Tools: request().Tools, Messages: []middleware.Message{qwen, middleware.System("last_one")}},
	} {
		tools := announce.New(req)
		for _, n := range []int{0, 1, 5, 500} {
			ctx := &ending{Context: t.Context(), n: n}
			ok, err := tools.Has(ctx, "last_one")
			require.ErrorIs(t, err, context.Canceled, name)
			require.False(t, ok)
			require.Equal(t, n+1, ctx.asked, name)
			require.Empty(t, announce.New(req).Loader(&ending{Context: t.Context()}))
		}
		ok, err := tools.Has(t.Context(), "last_one")
		require.NoError(t, err)
		require.True(t, ok, name)
	}
}
