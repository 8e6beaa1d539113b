package mcpproxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/mcpcheck"
)

const addTool = `{"name":"add","inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"integer"}}},"required":["ids"],"additionalProperties":false},` +
	`"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}}}}`

func callOf(id, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

func resultOf(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func listOf(id, cursor string, tools ...string) string {
	next := ""
	if cursor != "" {
		next = fmt.Sprintf(`,"nextCursor":%q`, cursor)
	}
	return resultOf(id, `{"tools":[`+strings.Join(tools, ",")+`]`+next+`}`)
}

// sink collects lines.
type sink struct {
	mu    sync.Mutex
	bytes bytes.Buffer
	taken int
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Write(p)
}

// rig is a proxy on stdio, in a bubble of synctest.
type rig struct {
	t              *testing.T
	p              *pipe
	server, client *sink // what each side has got
	input          *io.PipeWriter
	out            *lines
	log            string // the file of the record
}

func newRig(t *testing.T, mode string) *rig {
	r := &rig{t: t, server: &sink{}, client: &sink{}, log: filepath.Join(t.TempDir(), "calls.jsonl")}
	l, err := newLog("s", mode, r.log, nil)
	require.NoError(t, err)
	r.p = newPipe(t.Context(), newChecker(mode, l), r.server, r.client)
	r.out = r.p.fromServer()
	in, w := io.Pipe()
	r.input = w
	go r.p.fromClient(in)
	return r
}

// close ends the proxy, and returns the record.
func (r *rig) close() string {
	_ = r.input.Close()
	<-r.p.carriedOut()
	r.p.end()
	r.p.log.close()
	text, err := os.ReadFile(r.log)
	require.NoError(r.t, err)
	return string(text)
}

// says sends lines of the client; answers sends lines of the server.
func (r *rig) says(lines ...string) {
	_, err := r.input.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(r.t, err)
	synctest.Wait()
}

func (r *rig) answers(lines ...string) {
	_, err := r.out.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(r.t, err)
	synctest.Wait()
}

// got returns the lines that a side has got since the last look.
func (s *sink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.bytes.String()[s.taken:]
	s.taken = s.bytes.Len()
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func asked(t *testing.T, line string) (id string, m message) {
	t.Helper()
	m, ok := read(line)
	require.True(t, ok, line)
	require.Equal(t, methodList, m.method)
	require.True(t, isOwn([]byte(m.id)))
	return m.id, m
}

// A client that has never listed the tools gets its calls repaired all the same,
// and does not see that the proxy has asked.
func TestAsksForUnknownTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(callOf("1", "add", `{"ids":"[1]"}`), callOf(`"b"`, "add", `{"idz":[1]}`), resultOf("77", `{"roots":[]}`))
		got := r.server.got()
		require.Len(t, got, 2, "the calls wait, and nothing else does")
		require.Contains(t, got, resultOf("77", `{"roots":[]}`))
		at := 0
		if !isOwn([]byte(got[0])) {
			at = 1
		}
		id, _ := asked(t, got[at])
		r.answers(listOf(id, "p2", `{"name":"other"}`))
		id, m := asked(t, r.server.got()[0])
		require.Equal(t, "p2", m.root.Get("params").Get("cursor").Str())
		r.answers(listOf(id, "", addTool))
		require.Equal(t, []string{callOf("1", "add", `{"ids":[1]}`)}, r.server.got())
		refused := r.client.got()
		require.Len(t, refused, 1)
		require.Contains(t, refused[0], `{"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"Tool 'add' argument validation failed.`)
		require.Contains(t, refused[0], `],"isError":true}}`)
		r.answers(resultOf("1", `{"content":[],"structuredContent":{"sum":"1"}}`))
		require.Equal(t, []string{resultOf("1", `{"content":[],"structuredContent":{"sum":"1"}}`)}, r.client.got(), "a result never changes")
		record := r.close()
		require.Contains(t, record, `"status":"invalid"`)
		require.Contains(t, record, `"repairs":[{"code":"mend.unwrap","pointer":"/ids"}]`)
		require.Contains(t, record, `the result violates its outputSchema in 1 places: /sum (type)`)
	})
}

func TestServerThatDoesNotList(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modeEnforce, modeRepair} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, mode)
			sent := callOf("1", "add", `{"ids":"[1]"}`)
			// A call that could not be validated reaches the server in repair only.
			requireUnchecked := func(why string) {
				got, refused := r.server.got(), r.client.got()
				if mode == modeRepair {
					require.Equal(t, []string{sent}, got, why)
					require.Equal(t, []string{""}, refused, why)
					return
				}
				require.Equal(t, []string{""}, got, why)
				require.Len(t, refused, 1)
				require.Contains(t, refused[0], `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"the server did not list its tools, so toolmend could not validate this call`)
			}
			r.says(sent)
			id, _ := asked(t, r.server.got()[0])
			r.answers(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id))
			requireUnchecked("no list")
			r.says(sent)
			requireUnchecked("it is not asked twice")
			time.Sleep(askTimeout)
			r.says(sent)
			id, _ = asked(t, r.server.got()[0])
			time.Sleep(askTimeout)
			synctest.Wait()
			requireUnchecked("a call does not wait for ever")
			r.answers(listOf(id, "", addTool))
			require.Equal(t, []string{""}, r.client.got(), "an answer that comes late is not for the client")
			require.Contains(t, r.close(), `"no_schema":true`)
		})
	}
}

func TestCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(callOf("1", "add", `{"ids":"[1]"}`), callOf("2", "add", `{"ids":[2]}`))
		id, _ := asked(t, r.server.got()[0])
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
		r.says(cancel)
		r.answers(listOf(id, "", addTool))
		require.Equal(t, []string{cancel, callOf("2", "add", `{"ids":[2]}`)}, r.server.got())
		require.Len(t, r.p.followed, 1)
		r.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		require.Empty(t, r.p.followed, "a cancelled call has no response")
		r.close()
	})
}

// What a client of the next version says about itself is in the proxy's request
// too, and a result has its type.
func TestStatelessVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		meta := `"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
		r.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{},` + meta + `}}`)
		id, m := asked(t, r.server.got()[0])
		require.JSONEq(t, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}`, m.root.Get("params").Raw())
		r.answers(listOf(id, "", addTool))
		require.Contains(t, r.client.got()[0], `"isError":true,"resultType":"complete"}}`)
		r.says(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","task":{}}}`)
		require.Contains(t, r.client.got()[0], `"error":{"code":-32602,"message":"Tool 'add'`, "who asks for a task gets no result of a tool")
		r.close()
	})
}

// A call is changed or refused only by a schema that the server has confirmed.
func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		list := `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`
		r.says(list)
		require.Equal(t, []string{list}, r.server.got())
		r.answers(listOf("9", "", addTool))
		require.Equal(t, []string{listOf("9", "", addTool)}, r.client.got())
		r.says(callOf("1", "add", `{"idz":[1]}`))
		require.Contains(t, r.client.got()[0], "idz", "learned from the client's own list")
		for name, change := range map[string]func(){
			"a notification": func() {
				r.answers(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				r.client.got()
			},
			"time": func() { time.Sleep(freshFor) },
		} {
			change()
			r.server.got()
			r.says(callOf("2", "add", `{"ids":[2]}`))
			require.Equal(t, []string{callOf("2", "add", `{"ids":[2]}`)}, r.server.got(), "a valid call waits for nothing")
			r.says(callOf("3", "add", `{"idz":[1]}`))
			id, _ := asked(t, r.server.got()[0])
			r.answers(listOf(id, "", `{"name":"add","inputSchema":{"type":"object"}}`))
			require.Equal(t, []string{callOf("3", "add", `{"idz":[1]}`)}, r.server.got(), name)
			r.says(list)
			r.answers(listOf("9", "", addTool))
			r.client.got()
		}
		r.close()
	})
}

func TestModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		modeRepair:  {callOf("1", "add", `{"ids":[1]}`), callOf("2", "add", `{}`)},
		modeObserve: {callOf("1", "add", `{"ids":["1"]}`), callOf("2", "add", `{}`)},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, mode)
			r.says(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
			r.answers(listOf("9", "", addTool))
			r.server.got()
			r.says(callOf("1", "add", `{"ids":["1"]}`), callOf("2", "add", `{}`))
			require.Equal(t, want, r.server.got(), mode)
			require.Contains(t, r.close(), `"status":"invalid"`)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeObserve)
		r.says(callOf("1", "add", `{"ids":"[1]"}`))
		require.Equal(t, []string{callOf("1", "add", `{"ids":"[1]"}`)}, r.server.got(), "observe asks for nothing")
		r.close()
	})
}

// Enforce refuses a call that nothing validates, by tools that the server has confirmed. The
// other modes pass it.
func TestCallsThatCannotBeValidated(t *testing.T) {
	t.Parallel()
	deep := `{"ids":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`
	for name, c := range map[string]struct{ schema, tool, args, want string }{
		"a schema that is none":           {`{"type":"nonsense"}`, "odd", `{}`, "cannot use the schema of this tool"},
		"a reference to another document": {`{"$ref":"https://example.com/schema.json"}`, "odd", `{}`, "cannot use the schema of this tool"},
		"arguments past a limit":          {`{}`, "odd", deep, "64"},
	} {
		for _, mode := range []string{modeEnforce, modeRepair} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, mode)
					sent := callOf("1", c.tool, c.args)
					r.says(sent)
					id, _ := asked(t, r.server.got()[0])
					r.answers(listOf(id, "", `{"name":"odd","inputSchema":`+c.schema+`}`))
					if mode == modeEnforce {
						require.Contains(t, r.client.got()[0], c.want)
						require.Equal(t, []string{""}, r.server.got())
						time.Sleep(freshFor)
						r.says(sent)
						asked(t, r.server.got()[0]) // the list may be another one now
						time.Sleep(askTimeout)
						synctest.Wait()
						require.Contains(t, r.client.got()[0], "the server did not", "with a time limit")
					} else {
						require.Equal(t, []string{sent}, r.server.got())
						require.Contains(t, r.close(), `"unchecked":true`)
						return
					}
					r.close()
				})
			})
		}
	}
}

// A repaired call stays on one line, and keeps every byte that is not wrong.
func TestRepairKeepsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		r.answers(listOf("9", "", addTool))
		r.server.got()
		r.says(`{ "id" : 1, "params":{"arguments" : {"ids":"[\n 1,\n 12345678901234567890]"}, "name": "ADD", "_meta":{"progressToken":1.0}} ,"method":"tools\/call","jsonrpc":"2.0"}` + "\r")
		require.Equal(t, `{ "id" : 1, "params":{"arguments" : {"ids":[1,12345678901234567890]}, "name": "add", "_meta":{"progressToken":1.0}} ,"method":"tools\/call","jsonrpc":"2.0"}`+"\r", r.server.got()[0])
		r.close()
	})
}

// Arguments in forms that clients send, behind a server that has listed its tools.
func TestFormsOfCalls(t *testing.T) {
	t.Parallel()
	optional := `{"name":"opt","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for name, c := range map[string]struct{ sent, want string }{ // "" is refused
		"no arguments":                 {call(`{"name":"opt"}`), call(`{"name":"opt"}`)},
		"null":                         {call(`{"name":"opt","arguments":null}`), call(`{"name":"opt","arguments":{}}`)},
		"a string of JSON":             {call(`{"name":"add","arguments":"{\"ids\":[1]}"}`), call(`{"name":"add","arguments":{"ids":[1]}}`)},
		"a string":                     {call(`{"name":"add","arguments":"x"}`), ""},
		"a list":                       {call(`{"name":"add","arguments":[1]}`), ""},
		"no arguments that it needs":   {call(`{"name":"add"}`), ""},
		"a duplicate key":              {call(`{"name":"add","arguments":{"ids":[1],"ids":[2]}}`), ""},
		"two arguments":                {call(`{"name":"add","arguments":{"ids":"x"},"arguments":{"ids":"[1]"}}`), call(`{"name":"add","arguments":{"ids":"x"},"arguments":{"ids":[1]}}`)},
		"an id that is null":           {`{"id":null,"method":"tools/call","params":{"name":"add"}}`, ""},
		"an id that is an object":      {`{"id":{},"method":"tools/call","params":{"name":"add"}}`, ""},
		"a call without an id":         {`{"method":"tools/call","params":{"name":"add"}}`, ""},
		"a notification":               {`{"method":"notifications/x"}`, `{"method":"notifications/x"}`},
		"a name that is not a string":  {call(`{"name":7,"arguments":{}}`), call(`{"name":7,"arguments":{}}`)},
		"parameters that are a list":   {call(`["add"]`), call(`["add"]`)},
		"a tool that it does not list": {call(`{"name":"renamed","arguments":{"x":"1"}}`), call(`{"name":"renamed","arguments":{"x":"1"}}`)},
		"a byte order mark":            {"\ufeff" + call(`{"name":"add"}`), ""},
		"a carriage return":            {call(`{"name":"opt","arguments":{"n":"1"}}`) + "\r", call(`{"name":"opt","arguments":{"n":1}}`) + "\r"},
		"bytes that are not UTF-8":     {call(`{"name":"add","arguments":{"a":"` + "\xff" + `"}}`), ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, modeEnforce)
			r.says(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
			r.answers(listOf(`"l"`, "", addTool, optional))
			r.server.got()
			r.client.got()
			r.says(c.sent)
			require.Equal(t, c.want, r.server.got()[0], name)
			reply := r.client.got()[0]
			require.Equal(t, c.want == "", strings.Contains(reply, `"isError":true`) || strings.Contains(reply, `"code":-32000`), name)
			require.Equal(t, c.want == "", strings.Contains(reply, `"id":1,`) || strings.Contains(reply, `"id":null,`), name)
			r.close()
		})
	}
}

// A client that sends and does not read gets no call past the proxy: it is not read
// either, until it goes.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, err := newLog("s", modeEnforce, "", nil)
		require.NoError(t, err)
		server := &sink{}
		in, stuck := io.Pipe()
		p := newPipe(t.Context(), newChecker(modeEnforce, l), server, stuck)
		p.tools.learn(pages{tools: []mcpcheck.Tool{must(mcpcheck.Read(addTool))}}, true, time.Now())
		calls := strings.NewReader(strings.Repeat(callOf("1", "add", `{}`)+"\n", 5*maxWaiting))
		go p.fromClient(iotest.OneByteReader(calls))
		synctest.Wait()
		require.Len(t, p.waiting, maxWaiting)
		require.NotZero(t, calls.Len())
		_ = in.Close()
		synctest.Wait()
		require.Zero(t, server.bytes.Len())
		p.end()
	})
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("not ok")
	}
	return v
}

// What waits is bounded in number and bytes, and an id that repeats takes the
// place of the one before.
func TestBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		var all []string
		for i := range maxWaiting + 10 {
			all = append(all, callOf(fmt.Sprint(i), "add", `{"ids":"[1]"}`))
		}
		r.says(all...)
		id, _ := asked(t, r.server.got()[0])
		refused := r.client.got()
		require.Len(t, refused, 10, "the calls past the limit")
		require.Contains(t, refused[9], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"too many calls wait, so toolmend`, maxWaiting+9))
		r.answers(listOf(id, "", addTool))
		require.Equal(t, callOf("255", "add", `{"ids":[1]}`), r.server.got()[255], "the others waited")
		r.close()
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		r.answers(listOf("9", "", addTool))
		for i := range 3 * maxFollowed {
			r.says(callOf(fmt.Sprint(i/2), "add", `{"ids":[1]}`))
		}
		require.Len(t, r.p.followed, maxFollowed)
		require.LessOrEqual(t, r.p.bytes, maxBytes)
		require.Equal(t, 3*maxFollowed, strings.Count(r.close(), "\n"))
		require.Zero(t, r.p.bytes)
	})
}

func TestLongAndDeepLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		for i, line := range []string{
			callOf("1", "add", `{"ids":"`+strings.Repeat("x", mcpcheck.Limits.Bytes)+`"}`),
			callOf("1", "add", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)),
			callOf("1", "add", "["+strings.Repeat("1,", 1<<20)+"1]"),
			callOf("1", "add", `{"a":NaN}`),
			`{"method":"tools/call","params":{"arguments":{"a":NaN,"id":5}},"jsonrpc":"2.0","id":1}`,
			`{"params":{"arguments":"` + strings.Repeat("x", mcpcheck.Limits.Bytes) + `"},"method":"tools/call","id":1}`,
			`{"method":"tools/call","params":{"arguments":"` + strings.Repeat("x", mcpcheck.Limits.Bytes) + `"},"id":1}`,
			`{"id":1,"method":"ping","Method":"tools/call","params":{"name":"add"}}`,
			`[` + callOf("1", "add", `{}`) + `]`,
			`[{"id":1,"method":"tools\u002fcall","params":{"name":"add"}}]`,
			`{"id":1,"Method":"tools\u002Fc\u0061ll","params":{"name":"add"}}`,
			`{"id":1,"Method":"tools\/call","params":{"name":"add"}}`,
			"", "\x00\xff", `{"id":{}}`, "null", `{"method":"notifications/x"}`, `{"id":1,"Method":"tools\u002fcalls"}`,
		} {
			r.says(line)
			switch got := r.client.got()[0]; {
			case i <= 11:
				require.Contains(t, got, `"id":1,"error":{"code":-32000,"message":"`, i)
				require.Equal(t, []string{""}, r.server.got(), i)
			default:
				require.True(t, line == r.server.got()[0], i)
			}
		}
		// The proxy's own answer, too long to be read.
		r.says(callOf("1", "add", `{"ids":"[1]"}`))
		id, _ := asked(t, r.server.got()[0])
		r.answers(listOf(id, "", strings.Repeat(addTool+",", mcpcheck.Limits.Bytes/len(addTool)+1)+addTool), `{"jsonrpc":"2.0","method":"x"}`)
		require.Equal(t, []string{`{"jsonrpc":"2.0","method":"x"}`}, r.client.got())
		r.close()
	})
}

// Enforce refuses a line that is too long, whatever its beginning holds: its method may come at its end.
func TestLongLinesAreRefused(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[string]bool{modeEnforce: true, modeRepair: false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, mode)
			line := `{"params":{"name":"add","arguments":{"ids":"` + strings.Repeat("x", mcpcheck.Limits.Bytes+2<<20) + `"}},"method":"tools/call","id":7}`
			for rest := []byte(line); len(rest) > 0; rest = rest[min(len(rest), 1<<20):] {
				_, err := r.input.Write(rest[:min(len(rest), 1<<20)])
				require.NoError(t, err)
			}
			r.says("")
			if refused {
				require.Contains(t, r.client.got()[0], `"id":7,"error":{"code":-32000,"message":"a message that is longer than 16 MiB`)
				require.Equal(t, []string{""}, r.server.got())
			} else {
				require.True(t, line == r.server.got()[0])
			}
			r.close()
		})
	}
}

// A line that is too long stays whole: what the proxy has to say waits for its end.
func TestLongLinesAreNotDivided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		long := strings.Repeat("x", mcpcheck.Limits.Bytes+1)
		r.says(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		r.answers(listOf("9", "", addTool))
		r.client.got()
		r.server.got()
		_, err := r.out.Write([]byte(long)) // a line of the server begins
		require.NoError(t, err)
		r.says(callOf("1", "add", `{}`))
		require.Equal(t, []string{long}, r.client.got())
		r.answers("y")
		require.Equal(t, "y", r.client.got()[0])
		r.says(callOf("1", "add", `{}`))
		require.Contains(t, r.client.got()[0], "argument validation failed")

		_, err = r.out.Write([]byte(long)) // the output ends in a line
		require.NoError(t, err)
		require.NoError(t, r.out.end())
		_, err = r.input.Write([]byte(long)) // and so does the input
		require.NoError(t, err)
		r.close()
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(callOf("1", "add", `{"ids":"[1]"}`))
		id, _ := asked(t, r.server.got()[0])
		line := `{"result":"` + strings.Repeat("x", mcpcheck.Limits.Bytes) + `","id":` + id + `}`
		_, err := r.out.Write([]byte(line[:mcpcheck.Limits.Bytes+5]))
		require.NoError(t, err)
		r.answers(line[mcpcheck.Limits.Bytes+5:])
		require.Equal(t, []string{line}, r.client.got(), "a response that was not recognised at its start")
		batch := `[{"jsonrpc":"2.0","method":"notifications/message","params":{"data":` + id + `}}]`
		r.answers(batch)
		require.Equal(t, []string{batch}, r.client.got())
		r.answers(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[}`)
		require.Equal(t, []string{""}, r.client.got())
		time.Sleep(askTimeout)
		r.close()
	})
}

// Some programs end their last line with the end of the file. It is a message like
// any other, and the last one that the server gets.
func TestLastLineWithoutLineFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		r.says(callOf("1", "add", `{"ids":"[1]"}`))
		id, _ := asked(t, r.server.got()[0])
		_, err := r.input.Write([]byte(callOf("2", "add", `{"ids":"[2]"}`)))
		require.NoError(t, err)
		require.NoError(t, r.input.Close())
		synctest.Wait()
		r.answers(listOf(id, "", addTool))
		require.Equal(t, []string{callOf("1", "add", `{"ids":[1]}`), callOf("2", "add", `{"ids":[2]}`)}, r.server.got())
		r.close()
	})
}

// A call waits for ten seconds, even if the server keeps saying that its tools have
// changed.
func TestServerThatOnlyNotifies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, modeEnforce)
		for id := range 5 {
			r.says(callOf(fmt.Sprint(id), "add", `{"ids":"[1]"}`))
		}
		for range 20 {
			time.Sleep(askTimeout / 10)
			r.answers(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		require.NotContains(t, r.server.bytes.String(), methodCall)
		require.Equal(t, 5, strings.Count(r.client.bytes.String(), "so toolmend could not validate this call"))
		r.close()
	})
}

// generated returns a message of a side that is not a call of a tool that the
// proxy would change.
func generated(r *rand.Rand, n int) string {
	texts := []string{
		`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, `{"jsonrpc": "2.0", "id": "%d", "method": "resources/read", "params": {"uri": "file:///\u00e4\/b"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":0.50}}`, `{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":1e5}}`,
		`{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"tools/call"}}`, `{"id":%d,"method":"sampling/createMessage","params":{"name":"add","arguments":{"idz":1}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"name":"add"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"ids":[ 1,2 ]}}}`, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hidden","arguments":{"a":"1"}}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add","arguments":{"n":%d}}}`, `{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"sum":"x"}}}`,
		`[{"jsonrpc":"2.0","id":%d,"method":"tools/call"}]`, `{"jsonrpc":"2.0","id":%d,"result":{"tools":[` + addTool + `]}}`, `{"jsonrpc":"2.0","id":%d,"method":"vendor/thing","params":[]}`,
	}
	line := fmt.Sprintf(texts[r.IntN(len(texts))], n)
	switch r.IntN(20) {
	case 0:
		line = line[:r.IntN(len(line))]
	case 1:
		if strings.Contains(line, methodCall) { // it may become one that is repaired
			break
		}
		b := []byte(line)
		b[r.IntN(len(b))] = byte(r.IntN(255) + 1)
		line = strings.ReplaceAll(string(b), "\n", " ")
	case 2:
		line += strings.Repeat(" ", r.IntN(100_000))
	case 3:
		line += "\r"
	}
	return line + "\n"
}

// chunks writes text in pieces of random length.
func chunks(r *rand.Rand, text string, w io.Writer) {
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(1<<r.IntN(16)))
		_, _ = w.Write([]byte(text[:n]))
		text = text[n:]
	}
}

// All that is not a call to change passes byte for byte, in both directions at once.
func TestByteIdentity(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var says, answers strings.Builder
	for n := range 10_000 {
		says.WriteString(generated(r, n))
		answers.WriteString(generated(r, n))
	}
	says.WriteString("no line feed")
	answers.WriteString("no line feed")
	for _, mode := range []string{modeRepair, modeObserve} {
		l, err := newLog("s", mode, filepath.Join(t.TempDir(), "r"), nil)
		require.NoError(t, err)
		server, client := &sink{}, &sink{}
		p := newPipe(t.Context(), newChecker(mode, l), server, client)
		p.tools.learn(pages{tools: []mcpcheck.Tool{must(mcpcheck.Read(addTool))}}, true, time.Now())
		in, w := io.Pipe()
		go func() {
			chunks(rand.New(rand.NewPCG(3, 4)), says.String(), w)
			_ = w.Close()
		}()
		var wg sync.WaitGroup
		wg.Go(func() { p.fromClient(in) })
		out := p.fromServer()
		chunks(rand.New(rand.NewPCG(5, 6)), answers.String(), out)
		require.NoError(t, out.end())
		wg.Wait()
		p.end()
		l.close()
		require.True(t, says.String() == server.bytes.String(), mode)
		require.True(t, answers.String() == client.bytes.String(), mode)
	}
}

func FuzzPipe(f *testing.F) {
	f.Add(callOf("1", "add", `{"ids":"[1]"}`)+"\n", listOf("1", "", addTool)+"\n")
	f.Add(`{"id":1,"method":"tools/list"}`+"\n", listOf("1", "x", addTool, `{"name":"add"}`))
	f.Fuzz(func(t *testing.T, says, answers string) {
		l, err := newLog("s", modeRepair, "", nil)
		require.NoError(t, err)
		server, client := &sink{}, &sink{}
		p := newPipe(t.Context(), newChecker(modeObserve, l), server, client)
		p.fromClient(strings.NewReader(says))
		out := p.fromServer()
		_, _ = out.Write([]byte(answers))
		require.NoError(t, out.end())
		p.fromClient(strings.NewReader(says))
		p.end()
		require.Equal(t, says+says, server.bytes.String())
		require.Equal(t, answers, client.bytes.String())
	})
}
