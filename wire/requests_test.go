package wire_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/codectest"
)

// sameReading fails unless r reads body as the codec alone does, with and without deferred messages:
// the same request or error, the same bytes for the provider.
func sameReading(t require.TestingT, r *wire.Requests, c wire.Codec, client string, body []byte) {
	want, wantErr := c.DecodeRequest(body)
	for _, deferred := range []bool{true, false} {
		own := bytes.Clone(body)
		got, stream, err := r.Decode(c, "/v1/path", own, client, deferred)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			require.ErrorIs(t, err, wire.ErrShape)
			continue
		}
		require.NoError(t, err, "deferred %t", deferred)
		require.Equal(t, c.WantsStream("/v1/path", body), stream)
		require.True(t, wire.Unchanged(got))
		sent, err := c.EncodeRequest(got)
		require.NoError(t, err)
		require.Equal(t, string(body), string(sent))

		require.Equal(t, codec.Calls(want), codec.Calls(got), "deferred %t", deferred)
		full := got.Loaded()
		require.Same(t, full, full.Loaded())
		require.Equal(t, want.Messages, full.Messages, "deferred %t", deferred)
		require.Equal(t, want.Tools, full.Tools, "deferred %t", deferred)
		require.Equal(t, want.Native.Raw, full.Native.Raw)
		a, b := *want, *full
		a.Native, b.Native = nil, nil
		require.Equal(t, a, b)

		more := middleware.User("more")
		wantSent, wantErr := c.EncodeRequest(want.With(more))
		sent, err = c.EncodeRequest(got.With(more))
		require.Equal(t, wantErr, err)
		require.Equal(t, string(wantSent), string(sent))
		if !deferred { // a rude middleware
			for i := range got.Tools {
				clear(got.Tools[i].Parameters)
				got.Tools[i] = middleware.Tool{}
			}
		}
	}
}

// What really went over the line is read as without what is known.
func TestRequestsOfRecordings(t *testing.T) {
	t.Parallel()
	for _, c := range wire.Codecs() {
		t.Run(c.Dialect(), func(t *testing.T) {
			t.Parallel()
			var r wire.Requests
			for range 2 {
				for _, x := range codectest.Load(t, c.Dialect()) {
					sameReading(t, &r, c, "client", []byte(x.Request))
				}
			}
		})
	}
}

// repeated is a format whose requests are read with what is known.
type repeated struct {
	codec    wire.Codec
	list     string // the key of the messages
	before   string // in front of it
	message  func(text string) string
	tool     func(name string) string
	elements []string  // that are odd, or not of the format
	around   [2]string // the list of tools
}

func repeatedFormats() map[string]repeated {
	parameters := `{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("long ", 150) + `"}}}`
	return map[string]repeated{
		"chat": {wire.OpenAIChat(), "messages", `{"model":"m",`,
			func(text string) string { return `{"role":"user","content":` + strconv.Quote(text) + `}` },
			func(name string) string {
				return `{"type":"function","function":{"name":"` + name + `","parameters":` + parameters + `}}`
			},
			[]string{`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"t1","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c1","content":"ok"}`, `{"role":"assistant","function_call":{"name":"t1","arguments":"{}"}}`,
				`{"role":"function","name":"t1","content":"ok"}`, `{"role":7}`, `12`, `{"role":"user","role":"system","content":"x"}`}, [2]string{},
		},
		"anthropic": {wire.Anthropic(), "messages", `{"model":"m","max_tokens":9,`,
			func(text string) string { return `{"role":"user","content":` + strconv.Quote(text) + `}` },
			func(name string) string { return `{"name":"` + name + `","input_schema":` + parameters + `}` },
			[]string{`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t1","input":{}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"}]}`,
				`{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"added","input_schema":{"type":"object"}}}}]}`,
				`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"t1"}}]}`,
				`{"role":"assistant","content":[{"type":"compaction","content":"s","tool_changes":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"t2"}}]}]}`,
				`{"role":"other"}`, `12`}, [2]string{},
		},
		"responses": {wire.OpenAIResponses(), "input", `{"model":"m","instructions":"be short",`,
			func(text string) string { return `{"role":"user","content":` + strconv.Quote(text) + `}` },
			func(name string) string {
				return `{"type":"function","name":"` + name + `","parameters":` + parameters + `}`
			},
			[]string{`{"type":"function_call","call_id":"c1","name":"t1","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"ok"}`,
				`{"type":"reasoning","id":"rs_1","summary":[]}`, `{"role":"assistant","content":"text"}`,
				`{"type":"additional_tools","tools":[{"type":"function","name":"added","parameters":{"type":"object"}}]}`,
				`{"type":"tool_search_output","call_id":"c1","tools":[{"type":"function","name":"t1","parameters":{"type":"object"}}]}`,
				`{"type":7}`, `12`}, [2]string{},
		},
		"ollama": {wire.Ollama(), "messages", `{"model":"m",`,
			func(text string) string { return `{"role":"user","content":` + strconv.Quote(text) + `}` },
			func(name string) string {
				return `{"type":"function","function":{"name":"` + name + `","parameters":` + parameters + `}}`
			},
			[]string{`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"t1","arguments":{}}}]}`,
				`{"role":"tool","tool_name":"t1","content":"ok"}`, `{"role":"tool","content":"ok"}`, `{"role":7}`, `12`}, [2]string{},
		},
		"gemini": {wire.Gemini(), "contents", `{"system_instruction":{"parts":[{"text":"be short"}]},`,
			func(text string) string { return `{"role":"user","parts":[{"text":` + strconv.Quote(text) + `}]}` },
			func(name string) string {
				return `{"name":"` + name + `","parametersJsonSchema":` + parameters + `}`
			},
			[]string{`{"role":"model","parts":[{"functionCall":{"name":"t1","args":{}}}]}`, `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"t1"}},{"text":"x"}]}`,
				`{"role":"user","parts":[{"functionResponse":{"name":"t1","response":{}}}]}`, `{"parts":[]}`, `{"role":7}`, `12`},
			[2]string{`[{"googleSearch":{},"functionDeclarations":`, `},{"function_declarations":[{"name":"last"}]}]`},
		},
	}
}

// body returns a request with the elements of messages and of tools.
func (f repeated) body(messages, tools []string) string {
	return f.before + `"` + f.list + `":[` + strings.Join(messages, ",") + `],"tools":` + f.around[0] + `[` + strings.Join(tools, ",") + `]` + f.around[1] + `}`
}

// conversation returns n messages.
func (f repeated) conversation(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = f.message(fmt.Sprintf("%d: %s", i, strings.Repeat("x", 300)))
	}
	return list
}

func (f repeated) tools(names ...string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = f.tool(name)
	}
	return list
}

// Bodies that share their beginnings, valid or not, are read as without what is known.
func TestRequestsLaw(t *testing.T) {
	t.Parallel()
	for name, f := range repeatedFormats() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				var r wire.Requests
				messages, tools := f.conversation(3), f.tools("t1", "t2")
				for range rapid.IntRange(2, 8).Draw(t, "bodies") {
					switch rapid.IntRange(0, 9).Draw(t, "change") {
					case 0, 1, 2:
						messages = append(messages, f.message(strings.Repeat("y", rapid.IntRange(0, 1500).Draw(t, "size"))))
					case 3, 4:
						at := rapid.IntRange(0, len(messages)).Draw(t, "at")
						messages = slices.Insert(slices.Clone(messages), at, rapid.SampledFrom(f.elements).Draw(t, "element"))
					case 5:
						messages = messages[:rapid.IntRange(0, len(messages)).Draw(t, "left")]
					case 6:
						tools = append(tools, f.tool(rapid.SampledFrom([]string{"t1", "t3", "t4"}).Draw(t, "tool")))
					case 7:
						tools = tools[:rapid.IntRange(0, len(tools)).Draw(t, "tools")]
					case 8:
						tools = append(tools, rapid.SampledFrom([]string{`7`, `{}`, `{"type":"web_search"}`, `{"type":"web_search_20250305","name":"web_search"}`, `{"type":"custom","name":"free"}`,
							`{"type":"namespace","name":"n","tools":[` + f.tool("t5") + `]}`}).Draw(t, "odd tool"))
					}
					body := f.body(messages, tools)
					switch rapid.IntRange(0, 9).Draw(t, "spelling") {
					case 0: // the last list counts
						body = body[:len(body)-1] + `,"` + f.list + `":[` + strings.Join(messages[len(messages)/2:], ",") + `],"stream":true}`
					case 1:
						body = body[:len(body)-1] + `,"tools":[` + strings.Join(tools[len(tools)/2:], ",") + `],"Stream":null}`
					case 2:
						body = body[:rapid.IntRange(0, len(body)).Draw(t, "cut")]
					case 3:
						at := rapid.IntRange(0, len(body)-1).Draw(t, "byte")
						body = body[:at] + rapid.SampledFrom([]string{"]", "}", ",", `"`, "1", "\\", "\x01", "\xff", ""}).Draw(t, "instead") + body[at+1:]
					case 4:
						body = strings.ReplaceAll(body, "},{", "} ,\n{")
					case 5:
						body = mutate(t, body)
					}
					for range rapid.IntRange(1, 3).Draw(t, "times") {
						sameReading(t, &r, f.codec, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "client"), []byte(body))
					}
				}
			})
		})
	}
}

// What agents do is known: a turn more, lists of tools that alternate, a mark that moves, a compaction.
func TestRequestsAreKnown(t *testing.T) {
	t.Parallel()
	for name, f := range repeatedFormats() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := f.tools("t1", "t2", "t3", "t4"), f.tools("t1", "u2", "u3", "u4")
			long := f.conversation(60)
			marked := func(n int) []string {
				list := f.conversation(60)
				list[n] = strings.Replace(list[n], `"content"`, `"cache_control":{"type":"ephemeral"},"content"`, 1)
				return list
			}
			for what, c := range map[string]struct {
				bodies       []string
				hits, misses int64 // of the last body
			}{
				"the same":                 {[]string{f.body(long, a), f.body(long, a), f.body(long, a)}, 2, 0},
				"tools come twice first":   {[]string{f.body(nil, a), f.body(nil, a)}, 0, 1},
				"a turn more":              {[]string{f.body(long[:20], nil), f.body(long[:22], nil)}, 1, 0},
				"tools alternate":          {[]string{f.body(nil, a), f.body(nil, b), f.body(nil, a), f.body(nil, b), f.body(nil, a), f.body(nil, b)}, 1, 0},
				"a tool more":              {[]string{f.body(nil, a), f.body(nil, a), f.body(nil, append(slices.Clip(a), b[1]))}, 1, 0},
				"a mark moves":             {[]string{f.body(marked(57), nil), f.body(marked(59), nil)}, 1, 0},
				"a compaction":             {[]string{f.body(long, nil), f.body(append(slices.Clip(long[:10]), f.message("summary")), nil)}, 1, 0},
				"another beginning":        {[]string{f.body(long, nil), f.body(long[1:], nil)}, 0, 1},
				"lists that are too short": {[]string{f.body(long[:2], nil), f.body(long[:2], nil)}, 0, 0},
			} {
				var r wire.Requests
				var hits, misses int64
				for _, body := range c.bodies {
					hits, misses, _ = r.Counts()
					_, _, err := r.Decode(f.codec, "", []byte(body), "client", true)
					require.NoError(t, err)
				}
				h, m, _ := r.Counts()
				require.Equal(t, []int64{c.hits, c.misses}, []int64{h - hits, m - misses}, what)
			}

			var r wire.Requests
			for range 3 {
				_, _, err := r.Decode(f.codec, "", []byte(f.body(long, a)), "client", true)
				require.NoError(t, err)
			}
			hits, misses, _ := r.Counts()
			_, _, err := r.Decode(f.codec, "", []byte(f.body(long, a)), "another client", true)
			require.NoError(t, err)
			h, m, _ := r.Counts()
			require.Equal(t, []int64{1, 1}, []int64{h - hits, m - misses}, "tools are shared, messages are not")
		})
	}
}

// Many bodies at a time, that never come again, leave a bounded number of sums.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	var r wire.Requests
	f, long := repeatedFormats()["chat"], strings.Repeat("x", 100_000)
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for i := range 50 {
				messages := []string{f.message(fmt.Sprintf("%d %d", c, i))}
				for range 10 {
					messages = append(messages, f.message(long))
				}
				tools := f.tools(fmt.Sprintf("t_%d_%d", c, i), "t2", "t3")
				body := []byte(f.body(messages, tools))
				for range 3 {
					_, _, err := r.Decode(f.codec, "", body, "client", true)
					require.NoError(t, err)
				}
			}
		})
	}
	wg.Wait()
	hits, misses, sums := r.Counts()
	require.Less(t, sums, 132<<10, "16 MiB of sums")
	require.Greater(t, sums, 60<<10)
	require.Equal(t, int64(4*50*3), hits, "the messages twice, and the tools once")
	require.Equal(t, int64(4*50*3), misses)
}

// Different clients decode at the same time.
func TestRequestsConcurrently(t *testing.T) {
	t.Parallel()
	var r wire.Requests
	var wg sync.WaitGroup
	for _, f := range repeatedFormats() {
		for i := range 4 {
			wg.Go(func() {
				for n := range 20 {
					sameReading(t, &r, f.codec, "client", []byte(f.body(f.conversation(5+n), f.tools("t1", "t2", fmt.Sprintf("t%d", i%2)))))
				}
			})
		}
	}
	wg.Wait()
}
