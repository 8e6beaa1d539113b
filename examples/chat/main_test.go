package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

var update = flag.Bool("update", false, "write the golden files")

const questions = `How high is Galdhøpiggen?
And in feet?
And Snøhetta?

What is the longest fjord of Norway?
How long is it in miles?
What is 25^(1/2)?
What is 1/0?
Who wrote Faust?
`

// Both kinds of model hold the same conversation, but for the spelling of the
// arguments.
func TestConversation(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]middleware.ModelCall{
		"text":   textcall.Model(textcall.Options{}, textModel),
		"native": nativeModel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.NoError(t, chat{out: &out, echo: true}.run(t.Context(), strings.NewReader(questions), model, offline))
			file := "testdata/" + name + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

// What fails is told, and the next question is answered.
func TestFailuresDoNotEndTheConversation(t *testing.T) {
	t.Parallel()
	down := func(context.Context, string) (string, error) { return "", errors.New("no network") }
	var out bytes.Buffer
	require.NoError(t, chat{out: &out}.run(t.Context(), strings.NewReader("How high is it?\nWhat is 1+1?"), nativeModel, down))
	require.Equal(t, `Q:    search {"query":"How high is it?"}: no network
A: I could not find out: no network

Q:    calculator {"expression":"1+1"}: 2
A: 1+1 is 2.

Q: 
`, out.String())

	broken := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, errors.New("no model today")
	}
	out.Reset()
	require.NoError(t, chat{out: &out}.run(t.Context(), strings.NewReader("a\nb"), broken, offline))
	require.Equal(t, 2, strings.Count(out.String(), "Sorry: "), out.String())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, chat{out: &out}.run(ctx, strings.NewReader("a\nb"), nativeModel, offline), context.Canceled)
}

// The model may ask for a tool for ever; the loop does not.
func TestStepsAreLimited(t *testing.T) {
	t.Parallel()
	calls := 0
	endless := func(context.Context, string, []string) (string, error) {
		calls++
		return " Once more.\nAction: calculator\nAction Input: 1", nil
	}
	var out bytes.Buffer
	model := textcall.Model(textcall.Options{}, endless)
	require.NoError(t, chat{out: &out}.run(t.Context(), strings.NewReader("Well?"), model, offline))
	require.Contains(t, out.String(), "Sorry: agentloop: too many steps: 10")
	require.Equal(t, 10, calls)
}

// A follow-up is about the last few exchanges only.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	longest := 0
	model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		longest = max(longest, strings.Count(req.Messages[0].Text(), "\nA: "))
		return nativeModel(ctx, req)
	}
	var out bytes.Buffer
	require.NoError(t, chat{out: &out}.run(t.Context(), strings.NewReader(strings.Repeat("What is 1+1?\n", 20)), model, offline))
	require.Equal(t, remembered, longest)
}

func TestStandAlone(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"And in miles?":        "How high is the $1 hill in miles?",
		"what about Mont $0?":  "How high is Mont $0 in feet?",
		"Where is it?":         "Where is The $1 hill?",
		"Is there more of it?": "Is there more of The $1 hill?",
		"What is 1 + 1?":       "What is 1 + 1?",
	} {
		history := "Q: Old?\nA: Old is old.\nQ: How high is the $1 hill in feet?\nA: The $1 hill is 3 feet high.\n"
		require.Equal(t, want, standAlone(history+"\nFollow Up Input: "+input+"\nStandalone question:"))
	}
	require.Empty(t, standAlone("nothing"))
}
