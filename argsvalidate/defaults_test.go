package argsvalidate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := Options{}.withDefaults()
	require.Equal(t, 3, o.MaxAttempts)
	require.Zero(t, o.OnExhausted, "it depends on the layers around")
	require.Equal(t, RejectUnknown, o.UnknownTools)
	require.Equal(t, BySchema, o.Properties)
	require.Equal(t, strip.Optional, o.Strip)
	require.Empty(t, o.Placeholders)
	require.Equal(t, mend.Default(), o.Mend)
	require.Empty(t, o.Fixers)
	require.Equal(t, batch.ReissueAll, o.Batch)
	require.False(t, o.Formats)
	require.Equal(t, 10*time.Second, o.RuleTimeout)
	require.Equal(t, FailStep, o.OnRuleError)
	require.Nil(t, o.Feedback, "DefaultFeedback is called directly")
	require.Equal(t, 1<<20, o.Limits.Turns)
	require.False(t, o.LastTurnOnly)
}

func TestDefaultsKeepWhatIsSet(t *testing.T) {
	t.Parallel()
	o := Options{MaxAttempts: 7, OnExhausted: middleware.Raise, Properties: RejectUndeclared, Strip: strip.Off, RuleTimeout: time.Second,
		Feedback: func(FeedbackInput) string { return "mine" }}.withDefaults()
	require.Equal(t, 7, o.MaxAttempts)
	require.Equal(t, middleware.Raise, o.OnExhausted)
	require.Equal(t, RejectUndeclared, o.Properties)
	require.Equal(t, strip.Off, o.Strip)
	require.Equal(t, time.Second, o.RuleTimeout)
	require.Equal(t, "mine", o.Feedback(FeedbackInput{}))
}

func TestToolsInheritWhatTheyDoNotSet(t *testing.T) {
	t.Parallel()
	base := Options{MaxAttempts: 4, OnExhausted: middleware.DropInvalid, Strip: strip.All, Mend: []mend.Rule{mend.Unwrap}, Properties: NoteUndeclared}.withDefaults()
	all := ToolOptions{Strip: strip.All, Mend: []mend.Rule{mend.Unwrap}, OnExhausted: middleware.DropInvalid, Properties: NoteUndeclared, MaxAttempts: 4}
	for name, c := range map[string]struct {
		set  ToolOptions
		want func(*ToolOptions)
	}{
		"nothing":     {ToolOptions{}, func(*ToolOptions) {}},
		"Strip":       {ToolOptions{Strip: strip.Off}, func(o *ToolOptions) { o.Strip = strip.Off }},
		"Mend":        {ToolOptions{Mend: mend.Off()}, func(o *ToolOptions) { o.Mend = mend.Off() }},
		"OnExhausted": {ToolOptions{OnExhausted: middleware.Pass}, func(o *ToolOptions) { o.OnExhausted = middleware.Pass }},
		"Properties":  {ToolOptions{Properties: BySchema}, func(o *ToolOptions) { o.Properties = BySchema }},
		"Constrain":   {ToolOptions{Constrain: ConstrainNamed}, func(o *ToolOptions) { o.Constrain = ConstrainNamed }},
		"MaxAttempts": {ToolOptions{MaxAttempts: 1}, func(o *ToolOptions) { o.MaxAttempts = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, want := base, all
			o.PerTool = map[string]ToolOptions{"t": c.set}
			c.want(&want)
			require.Equal(t, want, o.forTool("t"))
			require.Equal(t, all, o.forTool("another"))
		})
	}
}
