package gateway

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/strip"
)

// Inner settings override outer ones, also with the default.
func TestSettingsOver(t *testing.T) {
	t.Parallel()
	outer := Settings{Mode: Repair, RaiseTokens: 100, Retries: new(2), LoopAfter: new(3), Escalate: "large", Heal: []string{"all"}, Repairs: []string{"all"}, Batch: batch.KeepValid, Limits: CallLimits{Depth: 5, Calls: 7}}
	inner := Settings{RaiseTokens: Unbounded, Retries: new(0), LoopAfter: new(0), Escalate: "none", Heal: []string{}, Repairs: []string{}, Strip: strip.Off, Batch: batch.ReissueAll, Limits: CallLimits{Calls: 9}}
	require.Equal(t, Settings{
		Mode: Repair, RaiseTokens: Unbounded, Retries: new(0), LoopAfter: new(0), Escalate: "none", Heal: []string{}, Repairs: []string{}, Strip: strip.Off, Batch: batch.ReissueAll, Limits: CallLimits{Depth: 5, Calls: 9},
	}, inner.over(outer))
	rules, err := heals(inner.Heal)
	require.NoError(t, err)
	require.Equal(t, heal.Off(), rules, "an empty list is none")
}

// The path of an error is the path of the key in the file.
func TestConfigErrorPath(t *testing.T) {
	t.Parallel()
	two := func(u Upstream) Config {
		u.URL = "http://localhost:2"
		return Config{Upstreams: []Upstream{{URL: "http://localhost:1", Default: true}, u}}
	}
	for want, c := range map[string]Config{
		"mode":                       {Settings: Settings{Mode: "x"}},
		"access.allow_hosts":         {Access: Access{AllowHosts: []string{"/"}}, Upstreams: []Upstream{{URL: "http://localhost:1"}}},
		"upstream#2.prefix":          two(Upstream{Prefix: "/a/"}),
		"upstream#2.timeouts.idle":   two(Upstream{Prefix: "/a", Timeouts: Timeouts{Idle: -5}}),
		"upstream#2.model#1.hold":    two(Upstream{Prefix: "/a", ModelRules: []ModelRule{{Match: "m", Settings: Settings{Hold: "x"}}}}),
		"upstream#2.tool#2.attempts": two(Upstream{Prefix: "/a", ToolRules: []ToolRule{{Name: "a"}, {Name: "b", Attempts: -1}}}),
		"upstream#2":                 two(Upstream{Prefix: "/a", Settings: Settings{Limits: CallLimits{Depth: -1}}}),
	} {
		invalid, ok := errors.AsType[*ConfigError](c.Validate())
		require.True(t, ok, want)
		require.Equal(t, want, invalid.Path)
	}
}
