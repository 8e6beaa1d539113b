package repocheck

import (
	"context"
	"fmt"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/strip"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// setup is an options type: a valid value, and the constructor that takes it.
type setup struct {
	valid any
	build func(o any)
	named []string // fields for which -1 is a named constant
}

func setups() []setup {
	return []setup{
		{valid: agentloop.Options{}, build: func(o any) {
			if _, err := agentloop.New(middlewaretest.NewFaulty(1, middlewaretest.FaultOptions{}).Call, o.(agentloop.Options)); err != nil {
				panic(err) // tools come from run-time data, so that New returns its errors
			}
		}},
		{valid: answer.Options{Schema: []byte(`{}`)}, build: func(o any) { answer.New(o.(answer.Options)) }},
		{valid: argsvalidate.Options{}, build: func(o any) { argsvalidate.New(o.(argsvalidate.Options)) }, named: []string{"RaiseTokens"}},
		{valid: budget.Limits{}, build: func(o any) { budget.With(context.Background(), o.(budget.Limits)) }},
		{valid: gateway.Options{}, build: func(o any) {
			if _, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, o.(gateway.Options)); err != nil {
				panic(err) // a configuration comes from a file, so that New returns its errors
			}
		}},
		{valid: middlewaretest.FaultOptions{}, build: func(o any) { middlewaretest.NewFaulty(1, o.(middlewaretest.FaultOptions)) }, named: []string{"AnswerAfter"}},
		{valid: report.Options{}, build: func(o any) { report.NewFigures(o.(report.Options)) }, named: []string{"Findings"}},
		{valid: heal.Options{}, build: func(o any) { heal.New(o.(heal.Options)) }},
		{valid: rescue.Options{}, build: func(o any) { rescue.New(o.(rescue.Options)) }},
		{valid: retry.Options{}, build: func(o any) { retry.New(o.(retry.Options)) }},
		{valid: strip.Options{}, build: func(o any) { _, _ = strip.New(nil, o.(strip.Options)) }},
		{valid: textcall.Options{}, build: func(o any) { textcall.New(o.(textcall.Options)) }},
		{valid: toolmend.Options{}, build: func(o any) { toolmend.Stack(o.(toolmend.Options)) }},
		{valid: tracing.Options{}, build: func(o any) { tracing.New(o.(tracing.Options)) }},
		{valid: transport.Options{}, build: func(o any) { transport.New(o.(transport.Options)) }, named: []string{"KeepAlive", "MaxModelCalls", "ReaskTimeout"}},
		{valid: wire.Endpoint{}, build: func(o any) { wire.Ollama().Model(o.(wire.Endpoint)) }, named: []string{"Silence"}},
	}
}

// partOf are the options types that are validated with the Options around them.
var partOf = []string{"argsvalidate.ToolOptions"}

// TestOptions: the zero of every setting is valid, a negative number and an
// unknown constant are not, and the constructor panics with Validate's error.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, s := range setups() {
		name := reflect.TypeOf(s.valid).String()
		require.NoError(t, validate(s.valid), name)
		require.NotPanics(t, func() { s.build(s.valid) }, name)
		o := reflect.New(reflect.TypeOf(s.valid)).Elem()
		o.Set(reflect.ValueOf(s.valid))
		walk(o, func(field string, f reflect.Value) {
			was := reflect.New(f.Type()).Elem()
			was.Set(f)
			defer f.Set(was)
			for _, wrong := range wrongValues(f.Type(), slices.Contains(s.named, field)) {
				f.Set(wrong)
				what := fmt.Sprintf("%s.%s = %v", name, field, wrong)
				err := validate(o.Interface())
				require.Error(t, err, what)
				require.Contains(t, err.Error(), field, what)
				require.PanicsWithError(t, err.Error(), func() { s.build(o.Interface()) }, what)
			}
		})
	}
	require.NoError(t, transport.Options{KeepAlive: transport.Off, ReaskTimeout: transport.Off, MaxModelCalls: middleware.Unlimited}.Validate())
	require.NoError(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{RaiseTokens: argsvalidate.NoRaise}}.Validate())
	require.NoError(t, report.Options{Findings: report.AllFindings}.Validate())
	require.NoError(t, wire.Endpoint{Silence: middleware.Unlimited}.Validate())
	require.NoError(t, middlewaretest.FaultOptions{AnswerAfter: middlewaretest.NeverAnswer}.Validate())
	require.Error(t, tracing.Options{Provider: "\xff"}.Validate())
	require.Error(t, transport.Options{MaxBody: 64<<20 + 1}.Validate())
}

// validate returns the error of an Options. One without a method Validate has no
// wrong values.
func validate(o any) error {
	if v, ok := o.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// walk calls do with every field of o that can be set, those of structs in it
// included.
func walk(o reflect.Value, do func(field string, f reflect.Value)) {
	for i := range o.NumField() {
		if f := o.Field(i); f.Kind() == reflect.Struct {
			walk(f, do)
		} else {
			do(o.Type().Field(i).Name, f)
		}
	}
}

// wrongValues returns values of typ that no setting has; minusOne says that -1
// is a named constant of it.
func wrongValues(typ reflect.Type, minusOne bool) []reflect.Value {
	var out []reflect.Value
	add := func(v any) { out = append(out, reflect.ValueOf(v).Convert(typ)) }
	switch typ.Kind() {
	case reflect.Int, reflect.Int64:
		add(-2)
		add(math.MinInt64)
		if !minusOne {
			add(-1)
		}
	case reflect.Float64:
		add(-0.5)
		add(math.NaN())
	case reflect.Uint8: // a list of constants
		add(math.MaxUint8)
	}
	return out
}

// TestAllOptions: a public package has no options that TestOptions leaves out.
func TestAllOptions(t *testing.T) {
	t.Parallel()
	known := slices.Clone(partOf)
	for _, s := range setups() {
		known = append(known, reflect.TypeOf(s.valid).String())
	}
	declared := regexp.MustCompile(`(?m)^type (\w*Options) struct`)
	all := open(t, "../..")
	for _, file := range all.having(".go") {
		dir := path.Dir(file)
		if isTest(file) || !all.inRoot(file) || !public(dir) || strings.HasPrefix(dir, "examples") {
			continue
		}
		name := path.Base(dir)
		if dir == "." {
			name = "toolmend"
		}
		for _, m := range declared.FindAllStringSubmatch(all.read(t, file), -1) {
			require.Contains(t, known, name+"."+m[1], file)
		}
	}
}
