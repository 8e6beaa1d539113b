package recorded_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// read reads a file as the commands do. It returns its calls, one a line with the tools and
// the outcome where the log has them, what was skipped, and its errors.
func read(t *testing.T, log *recorded.Log, file, text string) (calls, skipped, errs []string) {
	t.Helper()
	for line, err := range log.Reader(file, strings.NewReader(text)).All() {
		var turns []recorded.Turn
		if err == nil {
			turns, err = line.Turns(nil)
		}
		var skip recorded.Skipped
		if errors.As(err, &skip) {
			skipped = append(skipped, string(skip))
		} else if err != nil {
			errs = append(errs, err.Error())
		}
		for _, turn := range turns {
			var of []string
			for i, c := range turn.Calls {
				s := c.Name + " " + c.Arguments
				if i < len(turn.Outcomes) && turn.Outcomes[i] != "" {
					s += " " + string(turn.Outcomes[i])
				}
				if !turn.NoTools {
					for _, tool := range turn.Tools {
						if tool.Name == c.Name {
							s += " " + string(tool.Parameters)
						}
					}
				}
				of = append(of, s)
			}
			calls = append(calls, strings.Join(of, " + "))
		}
	}
	return calls, skipped, errs
}

// A message of OpenAI with a call, and an answer with it.
const (
	chatMessage = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_abcdefgh","type":"function","function":{"name":"add","arguments":"{}"}}]}`
	chatAnswer  = `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":` + chatMessage + `}]}`
)

// Each form of logs.md that programs write, with its calls as sent. Calls of a turn are
// joined by a plus.
func TestPrograms(t *testing.T) {
	t.Parallel()
	var eleven []string
	for i := range 11 {
		at := fmt.Sprintf("llm.output_messages.0.message.tool_calls.%d.tool_call.function.", i)
		eleven = append(eleven, fmt.Sprintf(`,"%sname":"add","%sarguments":"%d"`, at, at, i))
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"Claude Code": {`{"type":"summary","summary":"x","leafUuid":"u9"}
{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"sessionId":"s","message":{"role":"user","content":"list"}}
{"type":"assistant","uuid":"u2","sessionId":"s","message":{"id":"m1","type":"message","role":"assistant","model":"c","stop_reason":null,"content":[{"type":"text","text":"Yes."}]}}
{"type":"assistant","uuid":"u3","sessionId":"s","message":{"id":"m1","type":"message","role":"assistant","model":"c","stop_reason":null,"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u4","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no"}]}}
{"type":"assistant","uuid":"u5","sessionId":"s","message":{"id":"m1","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}},{"type":"server_tool_use","id":"t8","name":"web_search","input":{}}]}}
{"type":"assistant","uuid":"u5","sessionId":"s","message":{"id":"m1","type":"message","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}
{"type":"user","uuid":"u6","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"The user doesn't want to proceed with this tool use."}]}}
{"type":"progress","sessionId":"s","uuid":"p","data":{"type":"agent_progress","message":{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t5","name":"Bash","input":{"command":"id"}}]}}}}
{"type":"assistant","uuid":"u7","sessionId":"s","isSidechain":true,"message":{"id":"m2","role":"assistant","model":"c","content":[{"type":"tool_use","id":"t5","name":"Bash","input":{"command":"id"}}]}}
{"type":"assistant","uuid":"u8","sessionId":"s","message":{"id":"m3","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"x"}]}}
{"type":"assistant","uuid":"u9","sess`, []string{`Bash {"command":"ls"} error + Read {} rejected`, `Bash {"command":"id"}`}},
		"claude -p --output-format stream-json": {`{"type":"system","subtype":"init","session_id":"s","tools":["Bash"]}
{"type":"stream_event","session_id":"s","event":{"type":"content_block_start","content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}}
{"type":"assistant","session_id":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"result","subtype":"success","session_id":"s"}`, []string{`Bash {"command":"ls"}`}},
		"Codex": {`{"timestamp":"T","type":"session_meta","payload":{"id":"s1","dynamic_tools":[{"namespace":"app","name":"note","inputSchema":{"type":"object"}}]}}
{"timestamp":"T","type":"turn_context","payload":{"model":"gpt-x"}}
{"timestamp":"T","type":"response_item","payload":{"type":"message","role":"user","content":[]}}
{"timestamp":"T","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":","call_id":"c1"}}
{"timestamp":"T","type":"response_item","payload":{"type":"function_call","name":"note","arguments":"{}","call_id":"c5"}}
{"timestamp":"T","type":"event_msg","payload":{"type":"exec_command_end","call_id":"c1","exit_code":0}}
{"timestamp":"T","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"}}
{"timestamp":"T","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}
{"timestamp":"T","type":"response_item","payload":{"type":"local_shell_call","call_id":"c3","action":{"command":["ls"]}}}
{"timestamp":"T","type":"response_item","payload":{"type":"web_search_call","id":"w"}}
{"timestamp":"T","type":"compacted","payload":{"replacement_history":[{"type":"function_call","name":"f","arguments":"{}","call_id":"c1"}]}}`,
			[]string{`exec_command {"cmd": error  + note {} {"type":"object"}`, `apply_patch *** Begin + local_shell {"command":["ls"]}`}},
		"Codex of 2025": {`{"id":"s","timestamp":"T","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}
{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}
{"type":"function_call_output","call_id":"c1","output":"a"}`, []string{`shell {"command":["ls"]}`}},
		"flat list": {`[{"name":"add","arguments":{"a":1}},{"name":"add","arguments":"{\"a\":2}"},{"name":"add","args":{"a":3},"id":"c1"}]`, []string{`add {"a":1}`, `add {"a":2}`, `add {"a":3}`}},
		"LangChain": {`{"messages":[{"type":"human","content":"hi"},{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"c1","type":"tool_call"}],"invalid_tool_calls":[{"name":"add","args":"{\"a\":","id":"c2","error":"bad","type":"invalid_tool_call"}]},{"type":"tool","tool_call_id":"c1","status":"error","content":"x"}]}`,
			[]string{`add {"a":1} error + add {"a": error`}},
		"LangChain, both places": {`[{"type":"ai","data":{"content":[{"type":"tool_use","id":"c1","name":"add","input":{"a":1}}],"tool_calls":[{"name":"add","args":{"a":1},"id":"c1"}],"additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]}}}]`, []string{`add {"a":1}`}},
		"LangChain, old":         {`[{"type":"ai","data":{"content":"","additional_kwargs":{"function_call":{"name":"add","arguments":"{\"a\":1}"}}}}]`, []string{`add {"a":1}`}},
		"LangChain dump":         {`{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"c1"}]}}`, []string{`add {"a":1}`}},
		"LangChain, role":        {`{"messages":[{"role":"assistant","tool_calls":[{"name":"f","args":{"a":1},"id":"c1","type":"tool_call"}]}]}`, []string{`f {"a":1}`}},
		"tau2": {`{"info":{"agent_info":{"llm":"m"},"environment_info":{"tool_defs":[{"name":"add","parameters":{"type":"object"}}]}},"tasks":[{"evaluation_criteria":{"actions":[{"name":"gold","arguments":{}}]}}],"simulations":[{"id":"1","task_id":"1","reward_info":{"action_checks":[{"action":{"name":"gold","arguments":{}}}]},"messages":[{"role":"assistant","tool_calls":[{"id":"c1","name":"add","arguments":{"a":1},"requestor":"assistant"}]},{"role":"tool","id":"c1","error":true,"content":"x"},{"role":"user","tool_calls":[{"id":"c2","name":"reboot","arguments":{},"requestor":"user"}]}]}]}`,
			[]string{`add {"a":1} error {"type":"object"}`}},
		"tau2 messages": {`{"messages":[{"role":"assistant","tool_calls":[{"id":"c1","name":"add","arguments":{"a":1},"requestor":"assistant"}]}]}`, []string{`add {"a":1}`}},
		"LangSmith": {`{"id":"r0","trace_id":"r0","dotted_order":"1","run_type":"chain","outputs":{"messages":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"call_abcdefgh"}]}]}}
{"id":"r1","trace_id":"r0","parent_run_id":"r0","run_type":"llm","extra":{"invocation_params":{"model":"m","tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}},"inputs":{"messages":[[]]},"outputs":{"generations":[[{"message":{"lc":1,"type":"constructor","id":["AIMessage"],"kwargs":{"content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"call_abcdefgh"}]}}}]]}}
{"id":"r2","run_type":"llm","name":"ChatOpenAI","inputs":{"messages":[],"tools":[]},"outputs":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{}"}}]}}]}}
{"id":"r3","run_type":"tool","inputs":{"input":"{}"}}`, []string{`add {"a":1} {"type":"object"}`, `add {}`}},
		"LangSmith, root alone": {`{"id":"r0","trace_id":"r0","dotted_order":"1","run_type":"chain","inputs":{"messages":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":0},"id":"call_00000000"}]}]},"outputs":{"messages":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":0},"id":"call_00000000"}]},{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"call_abcdefgh"}]}]}}`,
			[]string{`add {"a":1}`}},
		"LangSmith tree": {`{"runs":[{"id":"r0","run_type":"chain","outputs":{},"child_runs":[{"id":"r1","run_type":"llm","parent_run_id":"r0","outputs":{"generations":[[{"message":{"kwargs":{"tool_calls":[{"name":"add","args":{"a":1},"id":"c1"}]},"id":["AIMessage"],"lc":1}}]]}}]}]}`, []string{`add {"a":1}`}},
		"LangSmith posts": {`{"post":[{"id":"r1","run_type":"llm","extra":{"invocation_params":{"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}},"inputs":{}}],"patch":[{"id":"r1","trace_id":"r1","outputs":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"add","input":{"a":1}}]}}]}`,
			[]string{`add {"a":1} {"type":"object"}`}},
		"OpenInference": {`{"name":"ChatCompletion","context":{"trace_id":"t"},"attributes":{"openinference.span.kind":"LLM","llm.model_name":"m","llm.tools.0.tool.json_schema":"{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}}","llm.input_messages.0.message.tool_calls.0.tool_call.function.name":"old","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.1.tool_call.function.name":"mul","llm.output_messages.0.message.tool_calls.0.tool_call.id":"c1","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"add","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{\"a\":1}"}}
{"name":"agent","attributes":{"openinference.span.kind":"AGENT","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"add"}}`, []string{`add {"a":1} {"type":"object"} + mul `}},
		"Phoenix data frame":          {`{"name":"x","span_kind":"LLM","attributes.openinference.span.kind":"LLM","attributes.llm.output_messages":[{"message.role":"assistant","message.tool_calls":[{"tool_call.id":"c1","tool_call.function.name":"add","tool_call.function.arguments":"{\"a\":1}"}]}]}`, []string{`add {"a":1}`}},
		"Claude Code without a role":  {`{"type":"assistant","message":{"type":"message","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]},"uuid":"u"}`, []string{`Bash {}`}},
		"message with a model":        {`{"role":"assistant","model":"m","tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{}"}}]}`, []string{`add {}`}},
		"mini-swe-agent, Responses":   {`{"trajectory_format":"mini-swe-agent-1.1","messages":[{"role":"user","content":"x"},{"object":"response","output":[{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}],"extra":{}},{"type":"function_call_output","call_id":"c1","output":"x"}]}`, []string{`bash {}`}},
		"Hermes, roles":               {`{"conversations":[{"role":"assistant","content":"<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>"}]}`, []string{`add {}`}},
		"OpenInference, nested":       {`[{"attributes":{"openinference":{"span":{"kind":"LLM"}},"llm":{"output_messages":[{"message":{"role":"assistant","tool_calls":[{"tool_call":{"id":"c1","function":{"name":"add","arguments":"{\"a\":1}"}}}]}}]}}}]`, []string{`add {"a":1}`}},
		"ShareGPT, roles":             {`{"messages":[{"role":"function_call","content":"{\"name\":\"add\",\"arguments\":{\"a\":1}}"}],"tools":"[{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}]"}`, []string{`add {"a":1} {"type":"object"}`}},
		"OpenInference, output alone": {`{"attributes":{"openinference.span.kind":"LLM","output.mime_type":"application/json","output.value":"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"add\",\"arguments\":\"{}\"}}]}}]}"}}`, []string{`add {}`}},
		"Langfuse, LangChain":         {`{"type":"GENERATION","input":[{"role":"tool","content":{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}}],"output":{"role":"assistant","content":"","additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]}}}`, []string{`add {"a":1} {"type":"object"}`}},
		"Langfuse, AI SDK":            {`{"trace":{"observations":[{"type":"GENERATION"}]},"observations":[{"type":"GENERATION","output":[{"toolCallId":"call_abcdefgh","toolName":"add","input":"{\"a\":1}"}]},{"type":"GENERATION","metadata":{"attributes":{"ai.prompt.tools":["{\"type\":\"function\",\"name\":\"add\",\"inputSchema\":{\"type\":\"object\"}}"]}},"output":"[{\"toolCallId\":\"call_abcdefgh\",\"toolName\":\"add\",\"input\":\"{\\\"a\\\":1}\"}]"}]}`, []string{`add {"a":1} {"type":"object"}`}},
		"Langfuse, ADK":               {`{"type":"GENERATION","input":{"config":{"tools":[{"function_declarations":[{"name":"add","parameters":{"type":"OBJECT"}}]}]}},"output":{"content":{"parts":[{"function_call":{"name":"add","args":{"a":1}}}],"role":"model"},"finish_reason":"STOP"}}`, []string{`add {"a":1} {"type":"object"}`}},
		"AI SDK, UIMessages": {`[{"id":"m1","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-add","toolCallId":"c1","state":"output-available","input":{"a":1},"output":1},{"type":"step-start"},{"type":"dynamic-tool","toolName":"mul","toolCallId":"c2","state":"output-available","input":{"a":2}},{"type":"tool-add","toolCallId":"c3","state":"output-error","rawInput":{"a":"x"},"errorText":"no"},{"type":"tool-add","toolCallId":"c4","state":"input-streaming","input":{"a":1}}]}]`,
			[]string{`add {"a":1}`, `mul {"a":2} + add {"a":"x"} error`}},
		"AI SDK, saved chat":    {`{"id":"x","messages":[{"id":"m1","role":"assistant","parts":[{"type":"tool-add","toolCallId":"c1","state":"output-available","input":{"a":1}}]}]}`, []string{`add {"a":1}`}},
		"AI SDK 4":              {`[{"id":"m1","role":"assistant","content":"","toolInvocations":[{"state":"result","toolCallId":"c1","toolName":"add","args":{"a":1}}],"parts":[{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1","toolName":"add","args":{"a":1}}}]}]`, []string{`add {"a":1}`}},
		"AI SDK, ModelMessages": {`[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":1}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"add","output":{"type":"text","value":"1"}}]}]`, []string{`add {"a":1}`}},
		"pydantic-ai":           {`[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"hi"}]},{"kind":"response","model_name":"m","parts":[{"part_kind":"tool-call","tool_name":"add","args":"{\"a\":1}","tool_call_id":"c1"},{"part_kind":"builtin-tool-call","tool_name":"web","args":{},"tool_call_id":"b"},{"part_kind":"tool-call","tool_name":"nil","args":null,"tool_call_id":"c2"}]},{"kind":"request","parts":[{"part_kind":"retry-prompt","tool_call_id":"c1","content":"no"}]}]`, []string{`add {"a":1} error + nil `}},
		"pydantic-ai, a list on each line": {`[{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"add","args":{"a":1},"tool_call_id":"c1"}]}]
[{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"add","args":{"a":2},"tool_call_id":"c2"}]}]`, []string{`add {"a":1}`, `add {"a":2}`}},
		"execute_tool spans": {`{"name":"execute_tool add","attributes":{"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"add","gen_ai.tool.call.id":"c1","gen_ai.tool.call.arguments":"{\"a\":1}"}}`, []string{`add {"a":1}`}},
		"execute_tool spans beside answers": {`{"attributes":{"gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"add","arguments":{"a":1}}]}]}}
{"attributes":{"gen_ai.tool.name":"add","gen_ai.tool.call.id":"c1","gen_ai.tool.call.arguments":"{\"a\":1}"}}`, []string{`add {"a":1}`}},
		"promptfoo": {`{"evalId":"e","results":{"results":[{"promptIdx":0,"testIdx":0,"provider":{"id":"p"},"response":{"output":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{}"}}]}},{"promptIdx":0,"testIdx":1,"response":{"output":"Yes.\n\n{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"add\",\"input\":{\"a\":1}}"}}]},"config":{"providers":[{"config":{"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}}]}}`,
			[]string{`add {} {"type":"object"}`, `add {"a":1} {"type":"object"}`}},
		"promptfoo lines": {`{"promptIdx":0,"testIdx":0,"provider":{"id":"p"},"response":{"output":{"functionCall":{"name":"add","args":{"a":1}}}}}`, []string{`add {"a":1}`}},
		"Inspect": {`{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[{"id":1,"epoch":1,"attachments":{"abc":"long \"text\""},"messages":[{"role":"assistant","tool_calls":[{"id":"c1","function":"add","arguments":{"a":"attachment://abc"},"type":"function"},{"id":"c2","function":"add","arguments":{},"parse_error":"Error parsing the following tool call arguments:\n\n{\"a\":\n\nError details: x"}]},{"role":"tool","tool_call_id":"c1","error":{"type":"parsing","message":"x"},"content":""}],"events":[{"event":"model","tools":[{"name":"add","parameters":{"type":"object"}}],"output":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","function":"add","arguments":{"a":"attachment://abc"}}]}}]}},{"event":"tool","function":"add","id":"c1","arguments":{"a":1}}]}]}`,
			[]string{`add {"a":"long \"text\""} error {"type":"object"} + add {"a": {"type":"object"}`}},
		"Inspect messages": {`[{"role":"assistant","content":"","source":"generate","tool_calls":[{"id":"c1","function":"add","arguments":{"a":1},"type":"function"}]}]`, []string{`add {"a":1}`}},
		"OpenAI Evals":     {`{"object":"eval.run.output_item","datasource_item":{},"sample":{"input":[],"output":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{}"}}]}]}}`, []string{`add {}`}},
		"ShareGPT":         {`{"conversations":[{"from":"human","value":"hi"},{"from":"function_call","value":"{\"name\":\"add\",\"arguments\":{\"a\":1}}"},{"from":"observation","value":"1"},{"from":"gpt","value":"1"}],"tools":"[{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}]"}`, []string{`add {"a":1} {"type":"object"}`}},
		"Hermes":           {`{"conversations":[{"from":"system","value":"x <tools>[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}}]</tools>"},{"from":"gpt","value":"So.\n<tool_call>\n{\"arguments\": {\"a\": 1}, \"name\": \"add\"}\n</tool_call>\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>"}]}`, []string{`add {"a": 1} {"type":"object"} + add {} {"type":"object"}`}},
		"xLAM":             {`{"id":1,"query":"q","answers":"[{\"name\":\"add\",\"arguments\":{\"a\":1}}]","tools":"[{\"name\":\"add\",\"description\":\"\",\"parameters\":{\"a\":{\"type\":\"int, optional\",\"description\":\"\"},\"b\":{\"type\":\"Callable\"}}}]"}`, []string{`add {"a":1} {"type":"object","properties":{"a":{"type":"integer"},"b":{}},"additionalProperties":false}`}},
		"LLaMA-Factory":    {`{"messages":[{"role":"assistant","content":[{"type":"tool_calls","value":"[{\"name\":\"add\",\"arguments\":{}}]"}]}],"tools":"[{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}]"}`, []string{`add {} {"type":"object"}`}},
		"Gemini CLI":       {`{"sessionId":"s","projectHash":"h","startTime":"T","messages":[{"id":"1","type":"gemini","model":"m","content":"","toolCalls":[{"id":"add-1","name":"add","args":{"a":1},"status":"cancelled","result":[{"functionResponse":{}}]},{"id":"add-2","name":"add","args":{"a":1},"status":"error"}]}]}`, []string{`add {"a":1} rejected + add {"a":1} error`}},
		"Gemini CLI lines": {`{"sessionId":"s","projectHash":"h","startTime":"T","kind":"main"}
{"id":"0","timestamp":"T","type":"user","content":[{"text":"x"}]}
{"id":"1","timestamp":"T","type":"gemini","content":"","toolCalls":[{"id":"add-1","name":"add","args":{"a":1}}]}
{"id":"1","timestamp":"T","type":"gemini","content":"","toolCalls":[{"id":"add-1","name":"add","args":{"a":1},"status":"error"},{"id":"add-2","name":"add","args":{"a":2}}]}
{"$rewindTo":"0"}
{"$set":{"lastUpdated":"T"}}`, []string{`add {"a":1} error + add {"a":2}`}},
		"opencode": {`{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"x"}]},{"info":{"role":"assistant","modelID":"m"},"parts":[{"type":"step-start"},{"type":"tool","tool":"read","callID":"c1","state":{"status":"error","input":{"path":"a"},"error":"no"}},{"type":"tool","tool":"invalid","callID":"c2","state":{"status":"completed","input":{"tool":"nope","error":"x"}}}]}]}`, []string{`read {"path":"a"} error`, `nope  error`}},
		"opencode run": {`{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"tool_use","timestamp":1,"sessionID":"ses_1","part":{"type":"tool","tool":"read","callID":"c1","state":{"status":"completed","input":{"path":"a"}}}}`, []string{`read {"path":"a"}`}},
		"opencode part": {`{"id":"prt_1","type":"tool","tool":"read","callID":"c1","state":{"status":"completed","input":{"path":"a"}}}`, []string{`read {"path":"a"}`}},
		"OpenHands":     {`[{"id":1,"source":"user","action":"message","args":{"content":"x"}},{"id":4,"source":"agent","action":"run","args":{"command":"ls"},"tool_call_metadata":{"function_name":"execute_bash","tool_call_id":"c1","model_response":{"id":"x","model":"m","choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"execute_bash","arguments":"{\"command\":\"ls\"}"}}]}}]}}},{"id":5,"source":"agent","observation":"run","content":"a","tool_call_metadata":{"tool_call_id":"c1","model_response":{"id":"x","choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"execute_bash","arguments":"{\"command\":\"ls\"}"}}]}}]}}}]`, []string{`execute_bash {"command":"ls"}`}},
		"OpenHands SDK": {`{"id":"e1","source":"agent","kind":"ActionEvent","tool_name":"terminal","tool_call_id":"c1","llm_response_id":"r","tool_call":{"id":"c1","name":"terminal","arguments":"{\"command\":\"ls\"}"},"action":{"kind":"A"}}
{"id":"e2","source":"environment","kind":"ObservationEvent","tool_name":"terminal","tool_call_id":"c1"}`, []string{`terminal {"command":"ls"}`}},
		"SWE-agent":      {`{"trajectory":[{"action":"ls","messages":[{"role":"assistant","tool_calls":[{"id":"c0","function":{"name":"bash","arguments":"{}"}}]}]}],"history":[{"role":"assistant","is_demo":true,"content":"","tool_calls":[{"id":"d","type":"function","function":{"name":"demo","arguments":"{}"}}]},{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}],"message_type":"action"}],"info":{}}`, []string{`bash {"command":"ls"}`}},
		"mini-swe-agent": {`{"trajectory_format":"mini-swe-agent-1.1","info":{},"messages":[{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}],"extra":{"response":{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}}]}}},{"role":"user","content":"Tool call error","extra":{"interrupt_type":"FormatError","response":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"cmd\":"}}]}}]}}}]}`, []string{`bash {}`, `bash {"cmd":`}},
		"Cursor": {`{"role":"user","message":{"content":[{"type":"text","text":"x"}]}}
{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"path":"a"}},{"type":"tool_use","name":"Read","input":{"path":"a"}}]}}`, []string{`Read {"path":"a"} + Read {"path":"a"}`}},
		"pi": {`{"type":"message","id":"1","message":{"role":"assistant","model":"m","content":[{"type":"toolCall","id":"c1","name":"add","arguments":{"a":1}}]}}` + "\n" + `{"type":"message","message":{"role":"toolResult","toolCallId":"c1","isError":true,"content":[]}}`, []string{`add {"a":1} error`}},
		"Copilot CLI": {`{"type":"session.start","data":{},"id":"0"}
{"type":"assistant.message","data":{"messageId":"m1","content":"","toolRequests":[{"toolCallId":"c1","name":"view","arguments":{"path":"a"},"type":"function"}]},"id":"1"}
{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"view","arguments":{"path":"a"}},"id":"2"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":false},"id":"3"}`, []string{`view {"path":"a"} error`}},
		"Kimi": {`{"type":"metadata","protocol_version":"1.4"}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s1","toolCallId":"Bash:0","name":"Bash","args":{"command":"ls"}}}
{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"Bash:0","result":{"output":"x","isError":true}}}
{"type":"context.append_message","message":{"role":"assistant","content":[],"toolCalls":[{"id":"Bash:0","name":"Bash","arguments":"{\"command\":\"ls\"}"}]}}`, []string{`Bash {"command":"ls"} error`}},
		"Qwen Code":                 {`{"uuid":"u","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"x"},{"functionCall":{"id":"call_1","name":"list","args":{"path":"a"}}}]}}`, []string{`list {"path":"a"}`}},
		"HAR":                       {`{"log":{"version":"1.2","creator":{},"entries":[{"request":{"method":"GET","url":"https://x.test/a.js"},"response":{"status":200,"content":{"text":"x"}}},{"request":{"method":"POST","url":"https://h.test/v1/chat/completions","postData":{"mimeType":"application/json","text":"{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}}]}"}},"response":{"status":200,"content":{"mimeType":"application/json","encoding":"base64","text":"eyJjaG9pY2VzIjpbeyJmaW5pc2hfcmVhc29uIjoidG9vbF9jYWxscyIsIm1lc3NhZ2UiOnsicm9sZSI6ImFzc2lzdGFudCIsInRvb2xfY2FsbHMiOlt7ImlkIjoiYyIsInR5cGUiOiJmdW5jdGlvbiIsImZ1bmN0aW9uIjp7Im5hbWUiOiJhZGQiLCJhcmd1bWVudHMiOiJ7fSJ9fV19fV19"}}}]}}`, []string{`add {} {"type":"object"}`}},
		"cassette":                  {`{"version":1,"interactions":[{"request":{"method":"POST","uri":"https://h.test/v1/messages","body":{"string":"{\"model\":\"m\",\"messages\":[],\"tools\":[{\"name\":\"add\",\"input_schema\":{\"type\":\"object\"}}]}"}},"response":{"status":{"code":200,"message":"OK"},"body":{"string":"{\"type\":\"message\",\"role\":\"assistant\",\"stop_reason\":\"tool_use\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"add\",\"input\":{}}]}"}}}]}`, []string{`add {} {"type":"object"}`}},
		"messages with a sessionId": {`{"sessionId":"s","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{}"}}]}],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}`, []string{`add {} {"type":"object"}`}},
		"messages with an epoch":    {`{"epoch":1,"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{}"}}]}],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]}`, []string{`add {} {"type":"object"}`}},
		"message with tools":        {`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"add","input":{}}],"tools":[{"name":"add","input_schema":{"type":"object"}}]}`, []string{`add {} {"type":"object"}`}},
		"LangSmith, a root alone and another trace": {`{"id":"r0","trace_id":"t1","run_type":"chain","outputs":{"messages":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{"a":1},"id":"call_abcdefgh"}]}]}}
{"id":"r1","trace_id":"t2","parent_run_id":"r","run_type":"llm","outputs":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"call_ijklmnop","type":"function","function":{"name":"mul","arguments":"{}"}}]}}]}}`, []string{`mul {}`, `add {"a":1}`}},
		"execute_tool spans beside other answers": {`{"attributes":{"gen_ai.tool.name":"add","gen_ai.tool.call.id":"c1","gen_ai.tool.call.arguments":"{}"}}
{"attributes":{"gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"c2","name":"mul","arguments":{}}]}]}}`, []string{`mul {}`, `add {}`}},
		"Inspect, printed anew": {`{"eval":{},"samples":[{"id":1,"epoch":1,"target":"x","messages":[{"role":"assistant","tool_calls":[{"id":"call_abcdefgh","function":"add","arguments":{"a": 1}}]}],"events":[{"event":"model","output":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"call_abcdefgh","function":"add","arguments":{
"a":1}}]}}]}}]}]}`, []string{`add {"a": 1}`}},
		"an id in three messages": {`{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"Bash","input":{}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","is_error":true,"content":"x"}]}}
{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"Bash","input":{}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","is_error":true,"content":"x"}]}}
{"type":"assistant","message":{"id":"m3","role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"Bash","input":{}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","is_error":false,"content":"x"}]}}`, []string{`Bash {} error`, `Bash {} error`, `Bash {}`}},
		"OpenInference, arguments": {`{"attributes":{"openinference":{"span":{"kind":"LLM"}},"llm":{"output_messages":[{"message":{"role":"assistant","tool_calls":[{"tool_call":{"function":{"name":"add","arguments":{"0":1,"x.y":{}}}}}]}}]}}}`, []string{`add {"0":1,"x.y":{}}`}},
		"HTTP, relative URL":       {`{"request":{"method":"POST","url":"/v1/responses","body":{"model":"m","input":"x","tools":[{"type":"function","name":"add","parameters":{"type":"object"}}]}},"response":{"status":200,"body":{"object":"response","status":"completed","output":[{"type":"function_call","id":"i","call_id":"c","name":"add","arguments":"{}"}]}}}`, []string{`add {} {"type":"object"}`}},
		"HTTP, Converse":           {`{"request":{"method":"POST","url":"https://h.test/model/x/converse","body":{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}}},"response":{"status":200,"body":{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f","input":{}}}]}}}}}`, []string{`f {} {"type":"object"}`}},
		"HTTP, path of a gateway":  {`{"request":{"method":"POST","url":"https://h.test/ask","body":{"model":"m","input":"x","tools":[{"type":"function","name":"add","parameters":{"type":"object"}}]}},"response":{"object":"response","status":"completed","output":[{"type":"function_call","id":"i","call_id":"c","name":"add","arguments":"{}"}]}}`, []string{`add {} {"type":"object"}`}},
		"MCP": {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}
{"method":"tools/call","id":2,"jsonrpc":"2.0","params":{"name":"add","arguments":{"a":1}}}
{"jsonrpc":"2.0","id":2,"result":{"isError":true,"content":[]}}`, []string{`add {"a":1} error {"type":"object"}`}},
		"MCP pairs": {`{"interactions":[{"request":{"jsonrpc":"2.0","id":1,"method":"tools/list"},"response":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}},{"request":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}},"response":{"result":{}}}]}`, []string{`add {"a":1} {"type":"object"}`}},
		"Cline":     {`[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read_file","input":{"path":"a"}}]}]`, []string{`read_file {"path":"a"}`}},
		"AI SDK telemetry": {`{"name":"ai.generateText","attributes":{"ai.operationId":"ai.generateText","ai.response.toolCalls":"[{\"toolCallId\":\"call_abcdefgh\",\"toolName\":\"add\",\"input\":\"{}\"}]"}}
{"attributes":{"ai.prompt.tools":["{\"type\":\"function\",\"name\":\"add\",\"inputSchema\":{\"type\":\"object\"}}"],"ai.response.toolCalls":"[{\"toolCallId\":\"call_abcdefgh\",\"toolName\":\"add\",\"input\":\"{}\"}]"}}`, []string{`add {} {"type":"object"}`}},
		"OpenLLMetry":                {`{"attributes":{"gen_ai.completion.0.role":"assistant","gen_ai.completion.0.tool_calls.0.name":"add","gen_ai.completion.0.tool_calls.0.id":"c","gen_ai.completion.0.tool_calls.0.arguments":"{}"}}`, []string{`add {}`}},
		"Codex, first form":          {`{"session":{"id":"s"},"items":[{"type":"message","role":"user","content":[]},{"type":"function_call","name":"shell","arguments":"{}","call_id":"call_abcdefgh"}]}`, []string{`shell {}`}},
		"Codex, without a timestamp": {`{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"call_abcdefgh"}}`, []string{`shell {}`}},
		"Qwen Code, ids that begin anew": {`{"uuid":"u1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"call_0","name":"list","args":{}}}]}}
{"uuid":"u2","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"call_0","name":"list","args":{}}}]}}`, []string{`list {}`, `list {}`}},
		"pi --mode json": {`{"type":"session","id":"s"}
{"type":"message_update","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_abcdefgh","name":"add","arguments":{}}]}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_abcdefgh","name":"add","arguments":{"a":1}}]}}
{"type":"turn_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_abcdefgh","name":"add","arguments":{"a":1}}]}}`, []string{`add {"a":1}`}},
		"AI SDK 3": {`[{"id":"1","role":"assistant","content":"","toolInvocations":[{"state":"result","toolCallId":"call_abcdefgh","toolName":"add","args":{"a":1},"result":1}]}]`, []string{`add {"a":1}`}},
		"AI SDK, stream of a message": {`{"type":"tool-input-start","toolCallId":"call_abcdefgh","toolName":"add"}
{"type":"tool-input-delta","toolCallId":"call_abcdefgh","inputTextDelta":"{"}
{"type":"tool-input-available","toolCallId":"call_abcdefgh","toolName":"add","input":{"a":1}}
{"type":"tool-output-available","toolCallId":"call_abcdefgh","output":1}`, []string{`add {"a":1}`}},
		"AI SDK, results":             {`[{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{}},{"type":"tool-result","toolCallId":"c1","toolName":"add","input":{},"output":1},{"type":"tool-error","toolCallId":"c1","toolName":"add","input":{},"error":"x"}]}]`, []string{`add {}`}},
		"AI SDK, a tool named result": {`[{"role":"assistant","parts":[{"type":"tool-result","toolCallId":"c1","state":"input-available","input":{"a":1}}]}]`, []string{`result {"a":1}`}},
		"Langfuse, encoded twice":     {`{"id":"o","type":"GENERATION","input":[],"output":"\"{\\\"role\\\":\\\"assistant\\\",\\\"tool_calls\\\":[{\\\"name\\\":\\\"add\\\",\\\"args\\\":{}}]}\""}`, []string{`add {}`}},
		"OpenLLMetry, functions":      {`{"attributes":{"llm.request.functions.0.name":"add","llm.request.functions.0.parameters":"{\"type\":\"object\"}","gen_ai.completion.0.role":"assistant","gen_ai.completion.0.tool_calls.0.name":"add","gen_ai.completion.0.tool_calls.0.arguments":"{}"}}`, []string{`add {} {"type":"object"}`}},
		"OpenLLMetry, old names":      {`{"attributes":{"llm.completions.0.role":"assistant","llm.completions.0.function_call.name":"add","llm.completions.0.function_call.arguments":"{}"}}`, []string{`add {}`}},
		"OpenInference, function":     {`{"attributes":{"openinference.span.kind":"LLM","llm.output_messages.0.message.role":"assistant","llm.output_messages.0.message.function_call_name":"add","llm.output_messages.0.message.function_call_arguments_json":"{}"}}`, []string{`add {}`}},
		"OpenInference, Bedrock":      {`{"attributes":{"openinference.span.kind":"LLM","llm.tools.0.tool.json_schema":"{\"toolSpec\":{\"name\":\"add\",\"inputSchema\":{\"json\":{\"type\":\"object\"}}}}","llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"add","llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{}"}}`, []string{`add {} {"type":"object"}`}},
		"OpenInference, 11 calls":     {`{"attributes":{"openinference.span.kind":"LLM"` + strings.Join(eleven, "") + `}}`, []string{"add 0 + add 1 + add 2 + add 3 + add 4 + add 5 + add 6 + add 7 + add 8 + add 9 + add 10"}},
		"Converse":                    {`{"modelId":"m","messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"add","input":{}}}]}],"toolConfig":{"tools":[{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}]}}`, []string{`add {} {"type":"object"}`}},
		"Bedrock invocation log":      {`{"modelId":"m","input":{"inputBodyJson":{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}]}}},"output":{"outputBodyJson":{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"add","input":{}}}]}}}}}`, []string{`add {} {"type":"object"}`}},
		"Helicone":                    {`{"request_body":{"messages":[],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},"response_body":` + chatAnswer + `}`, []string{`add {} {"type":"object"}`}},
		"Braintrust":                  {`{"span_attributes":{"type":"llm"},"input":[],"metadata":{"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},"output":[{"message":` + chatMessage + `}]}`, []string{`add {} {"type":"object"}`}},
		"Opik":                        {`{"type":"llm","input":{"messages":[],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},"output":` + chatAnswer + `}`, []string{`add {} {"type":"object"}`}},
		"PostHog":                     {`{"event":"$ai_generation","properties":{"$ai_tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}],"$ai_output_choices":[{"role":"assistant","content":[{"type":"function","id":"c","function":{"name":"add","arguments":{}}}]}]}}`, []string{`add {} {"type":"object"}`}},
		"MLflow": {`{"info":{},"data":{"spans":[{"attributes":{"mlflow.spanType":"\"AGENT\"","mlflow.spanOutputs":` + chatAnswer + `}},{"attributes":{"mlflow.spanType":"\"CHAT_MODEL\"","mlflow.spanInputs":"{\"tools\":[{\"name\":\"add\",\"parameters\":{\"type\":\"object\"}}]}","mlflow.spanOutputs":` + chatAnswer + `}}]}}`,
			[]string{`add {} {"type":"object"}`}},
		"OpenAI Agents, trace": {`{"object":"trace","id":"t"}
{"object":"trace.span","id":"s","span_data":{"type":"generation","output":[` + chatMessage + `]}}
{"object":"trace.span","id":"s2","span_data":{"type":"function","name":"add","input":"{}"}}`, []string{`add {}`}},
		"preferences of OpenAI":    {`{"input":{"messages":[],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]},"preferred_output":[` + chatMessage + `],"non_preferred_output":[` + strings.ReplaceAll(chatMessage, "abcdefgh", "ijklmnop") + `]}`, []string{`add {} {"type":"object"}`, `add {} {"type":"object"}`}},
		"preferences of TRL":       {`{"prompt":[],"chosen":[` + chatMessage + `],"rejected":[{"role":"assistant","content":"x"}]}`, []string{`add {}`}},
		"tau-bench":                {`[{"task_id":0,"info":{"task":{"actions":[{"name":"add","kwargs":{}}]}},"traj":[` + chatMessage + `]}]`, []string{`add {}`}},
		"ATIF":                     {`{"schema_version":"ATIF-v1.2","agent":{"name":"x"},"steps":[{"source":"user","message":"x"},{"source":"agent","message":"","tool_calls":[{"tool_call_id":"c","function_name":"add","arguments":{"a":1}}]}]}`, []string{`add {"a":1}`}},
		"Copilot chat":             {`{"requests":[{"message":{"text":"x"},"response":[],"result":{"metadata":{"toolCallRounds":[{"response":"","toolCalls":[{"id":"call_abcdefgh","name":"add","arguments":"{}"}]}]}}}]}`, []string{`add {}`}},
		"Google ADK session":       {`{"id":"s","appName":"a","events":[{"author":"user","content":{"role":"user","parts":[]}},{"author":"a","content":{"role":"model","parts":[{"functionCall":{"name":"add","args":{}}}]}}]}`, []string{`add {}`}},
		"LangChain results":        {`{"generations":[[{"text":"","message":{"type":"ai","content":"","tool_calls":[{"name":"add","args":{},"id":"c"}]}}]],"llm_output":{}}`, []string{`add {}`}},
		"LangGraph state":          {`{"values":{"messages":[{"type":"ai","content":"","tool_calls":[{"name":"add","args":{},"id":"c"}]}]},"next":[]}`, []string{`add {}`}},
		"AI SDK, steps":            {`{"steps":[{"text":"","content":[{"type":"tool-call","toolCallId":"call_abcdefgh","toolName":"add","input":{}}],"toolCalls":[{"type":"tool-call","toolCallId":"call_abcdefgh","toolName":"add","input":{}}]}]}`, []string{`add {}`}},
		"a message with a message": {`[{"role":"assistant","message":{"x":1},"data":{"content":"x"},"content":"","tool_calls":[{"id":"c","function":{"name":"add","arguments":"{}"}}]}]`, []string{`add {}`}},
		"AutoGen":                  {`{"messages":[{"type":"TextMessage","source":"u","content":"x"},{"type":"ToolCallRequestEvent","source":"a","content":[{"id":"c","name":"add","arguments":"{}"}]}]}`, []string{`add {}`}},
		"AutoGen, model":           {`[{"type":"AssistantMessage","source":"a","content":[{"id":"c","name":"add","arguments":"{}"}]}]`, []string{`add {}`}},
		"goose":                    {`{"role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"add","arguments":{}}}}]}`, []string{`add {}`}},
		"Haystack":                 {`[{"role":"assistant","content":[{"tool_call":{"tool_name":"add","arguments":{},"id":"c"}}]}]`, []string{`add {}`}},
		"LlamaIndex":               {`[{"role":"assistant","blocks":[{"block_type":"tool_call","tool_call_id":"c","tool_name":"add","tool_kwargs":{"a":1}}]}]`, []string{`add {"a":1}`}},
		"Semantic Kernel":          {`{"messages":[{"role":"assistant","items":[{"content_type":"function_call","id":"c","name":"p-add","arguments":"{}"}]}]}`, []string{`p-add {}`}},
		"Kimi wire": {`{"timestamp":1,"message":{"type":"ToolCall","payload":{"type":"function","id":"c","function":{"name":"add","arguments":"{\"a\":"}}}}
{"timestamp":2,"message":{"type":"ToolCallPart","payload":{"arguments_part":"1}"}}}`, []string{`add {"a":1}`}},
		"OpenAI, custom tool":      {`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"add","input":"x"}}]}]}`, []string{`add x`}},
		"Codex, exit code as text": {`[{"type":"function_call","name":"sh","arguments":"{}","call_id":"c1"},{"type":"function_call_output","call_id":"c1","output":"Process exited with code 2\nx"}]`, []string{`sh {} error`}},
		"Hermes, tools":            {`{"conversations":[{"from":"system","value":"<tools>{\"name\":\"add\",\"parameters\":{\"a\":1}}\n{\"name\":\"b\"}</tools>"},{"from":"gpt","value":"<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>"}]}`, []string{`add {} {"a":1}`}},
		"promptfoo, a message":     {`{"promptIdx":0,"response":{"output":` + chatMessage + `}}`, []string{`add {}`}},
		"promptfoo, messages":      {`{"promptIdx":0,"response":{"output":[` + chatMessage + `]}}`, []string{`add {}`}},
		"MCP, tools at the end": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}
{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}`, []string{`add {} {"type":"object"}`}},
		"Bedrock messages": {`[{"role":"assistant","content":[{"text":"x"},{"toolUse":{"toolUseId":"t","name":"add","input":{"a":1}}}]}]`, []string{`add {"a":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, errs := read(t, recorded.NewLog(), "f", c.text)
			require.Empty(t, errs)
			require.Equal(t, c.want, got)
		})
	}
}

// A record with messages is a conversation, whatever else it has.
func TestConversationsWithOtherMembers(t *testing.T) {
	t.Parallel()
	for _, more := range []string{
		`"steps":[{"content":"x"}]`, `"history":[{"role":"user","content":"x"}]`, `"events":[{"author":"x"}]`, `"generations":[]`, `"trace_id":"t","outputs":{}`,
		`"answers":"x","tools":[]`, `"conversations":[]`, `"prompt":"x","chosen":["x"]`, `"task_id":1,"traj":"x"`, `"modelId":"x","output":{"outputBodyJson":{}}`,
		`"object":"trace","id":"1"`, `"session":"s","items":[]`, `"llm":{"a.b":{"0":1}}`, `"name":"f","arguments":{}`,
	} {
		got, _, errs := read(t, recorded.NewLog(), "f", `{`+more+`,"messages":[`+chatMessage+`]}`)
		require.Empty(t, errs, more)
		require.Len(t, got, 1, more)
		require.Contains(t, got[0], "add {}", more)
	}
}

// The model is in the message, beside it, or in the record around it.
func TestModels(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"LangChain dump":   `{"lc":1,"type":"constructor","id":["x","AIMessage"],"kwargs":{"response_metadata":{"model_name":"m"},"tool_calls":[{"name":"f","args":{},"id":"c"}]}}`,
		"LangChain result": `{"generations":[[{"message":{"type":"ai","content":"","tool_calls":[{"name":"f","args":{},"id":"c"}]}}]],"llm_output":{"model_name":"m"}}`,
		"opencode":         `{"info":{"id":"s"},"messages":[{"info":{"role":"assistant","modelID":"m"},"parts":[{"type":"tool","tool":"f","callID":"c","state":{"status":"completed","input":{}}}]}]}`,
		"tau2":             `{"info":{"agent_info":{"llm":"m"}},"simulations":[{"id":"1","messages":[` + chatMessage + `]}]}`,
		"OpenAI Evals":     `{"sample":{"model":"m","output":[` + chatMessage + `]}}`,
		"Bedrock":          `{"modelId":"m","messages":[` + chatMessage + `]}`,
		"list of calls":    `{"model":"m","name":"f","arguments":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for line := range recorded.NewLog().Reader("f", strings.NewReader(text)).All() {
				turns, _ := line.Turns(nil)
				for _, turn := range turns {
					require.Equal(t, "m", turn.Model)
					text = ""
				}
			}
			require.Empty(t, text, "a turn")
		})
	}
}

// The arguments in the logs of agents that worked for a person are the person's.
func TestSessionForms(t *testing.T) {
	t.Parallel()
	const messages = `[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}]`
	for name, c := range map[string]struct {
		file, text string
		want       bool
	}{
		"messages":       {"f", messages, false},
		"Cline":          {"tasks/1/api_conversation_history.json", messages, true},
		"SWE-agent":      {"f", `{"history":` + messages + `,"trajectory":[]}`, true},
		"mini-swe-agent": {"f", `{"messages":` + messages + `,"trajectory_format":"mini-swe-agent-1.1"}`, true},
		"Codex of 2025":  {"f", `{"record_type":"state"}` + "\n" + `{"type":"function_call","name":"f","arguments":"{}","call_id":"c1"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for line := range recorded.NewLog().Reader(c.file, strings.NewReader(c.text)).All() {
				turns, _ := line.Turns(nil)
				for _, turn := range turns {
					require.Equal(t, c.want, turn.Session)
					n++
				}
			}
			require.Equal(t, 1, n)
		})
	}
}

func TestRepeatsAcrossFiles(t *testing.T) {
	t.Parallel()
	line := func(id, call string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":%q,"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]}}`, id, call) + "\n"
	}
	log := recorded.NewLog()
	got, _, _ := read(t, log, "a", line("m1", "toolu_01abcdefgh"))
	require.Len(t, got, 1)
	got, skipped, _ := read(t, log, "b", line("m1", "toolu_01abcdefgh")+line("m2", "call_1"))
	require.Len(t, got, 1)
	require.Contains(t, skipped, string(recorded.SkippedRepeat))
	got, _, _ = read(t, log, "c", line("m3", "call_1"))
	require.Len(t, got, 1, "an id that counts up is of another conversation")
}

// A record with calls that are not read, or not as the model sent them, is an error, and never
// a call.
func TestCallsThatAreNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no name":               {`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","arguments":{}}]}]}`, "f:1: a tool call without a name: its members are id, arguments"},
		"unknown arguments":     {`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","name":"x","params":{"a":1}}]}]}`, `f:1: a call of "x" with arguments under no known member: its members are id, name, params`},
		"codex exec":            {`{"type":"item.completed","item":{"type":"mcp_tool_call","server":"s","tool":"t","arguments":{}}}`, "f:1: the output of codex exec --json does not have the calls as the model sent them"},
		"OpenHands":             {`{"id":1,"source":"agent","action":"run","args":{"command":"ls"}}`, "f:1: an action of OpenHands without tool_call_metadata"},
		"Hermes, no JSON":       {`{"conversations":[{"from":"gpt","value":"<tool_call>{'name': 'x'}</tool_call>"}]}`, "f:1: a <tool_call> in a text that is not JSON"},
		"ShareGPT, no JSON":     {`{"conversations":[{"from":"function_call","value":"add(1)"}]}`, "f:1: a message function_call that is not JSON"},
		"tau2, voice":           {`{"simulations":[{"id":"1","ticks":[{"tool_calls":[{"name":"x","arguments":{}}]}]}]}`, "f:1: a record in a list that may have calls, in no form that is read: its members are id, ticks"},
		"HTTP, other form":      {`{"request":{"method":"POST","url":"https://h.test/ask","body":{"messages":[]}},"response":{"status":200,"body":{"result":{"message":{"tool_calls":[{}]}}}}}`, "f:1: response: neither a whole answer"},
		"HTTP, cut off":         {`{"request":{"method":"POST","url":"https://h.test/ask","body":{"messages":[]}},"response":{"status":200,"body":"{\"choices\":[{\"message\":{\"tool_calls\":[{"}}`, "f:1: response: neither a whole answer"},
		"HTTP, no answer":       {`{"request":{"method":"POST","url":"https://h.test/v1/chat/completions","body":{"messages":[]}},"response":{"status":200}}`, "f:1: a request without a response"},
		"a line that is broken": {`{"type":"user","message":{"role":"user","content":"x"}}` + "\n" + `{"type":assistant"}`, "f:2: not JSON"},
		"a line with an end":    {`{"type":"user","message":{"role":"user","content":"x"}}` + "\n" + `{"type":"assis` + "\n", "f:2: not JSON"},
		"a number as a turn":    {`{"tool_calls":[{},1],"tools":[]}`, "f:1: a tool call without a name: its members are none"},
		"an object as calls":    {`{"tool_calls":{"a":{"name":"x"}},"tools":[]}`, "f:1: tool_calls is an object, which is not expected there"},
		"null as a turn":        {`{"tool_calls":[{"name":"x"},null],"tools":[]}`, "f:1: tool_calls has null, which is not expected there"},
		"many members":          {`{"messages":[{"role":"assistant","tool_calls":[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1}]}]}`, "its members are a, b, c, d, e, f, g, h, i, j, k, l, …"},
		"a zip archive":         {"PK\x03\x04", "f: a zip archive: write an .eval log of Inspect as JSON first"},
		"a number as a call":    {`{"messages":[{"role":"assistant","tool_calls":[1]}]}`, "f:1: tool_calls has a number"},
		"a text as the calls":   {`{"messages":[{"role":"assistant","tool_calls":"x"}]}`, "f:1: tool_calls is of kind string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, errs := read(t, recorded.NewLog(), "f", c.text)
			require.Empty(t, got)
			require.Len(t, errs, 1)
			require.Contains(t, errs[0], c.want)
		})
	}
}

// deep returns an answer with a call in lists in each other.
func deep(n int) string {
	return strings.Repeat(`{"data":[`, n) + `{"type":"llm","input":{},"output":` + chatAnswer + `}` + strings.Repeat(`]}`, n)
}

// tree returns a tree of LangSmith's runs, of which the deepest is of a model, and is in n
// lists. The members more are in each of the others.
func tree(n int, more string) string {
	return strings.Repeat(`{"run_type":"chain",`+more+`"child_runs":[`, n) + `{"run_type":"llm","outputs":` + chatAnswer + `}` + strings.Repeat(`]}`, n)
}

// The attributes of each list may be copied, so the number of lists in each other is bounded.
func TestListsInLists(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]func(int) string{
		"records": deep, "runs": func(n int) string { return tree(n, "") }, "runs with dots": func(n int) string { return tree(n, `"llm.model_name":"m",`) },
	} {
		calls, _, errs := read(t, recorded.NewLog(), "f", in(32))
		require.Equal(t, []string{"add {}"}, calls, name)
		require.Empty(t, errs, name)
	}
	calls, _, errs := read(t, recorded.NewLog(), "f", tree(33, ""))
	require.Empty(t, calls)
	require.Equal(t, []string{"f:1: a record that may have calls, in more than 32 lists in each other"}, errs)
}

// A record with dots in its names, and one with attributes, is copied with what is in it. Not
// parallel: it counts what other tests allocate as well.
func TestCopiesOfRecords(t *testing.T) {
	allocated := func(text string) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read(t, recorded.NewLog(), "f", text)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	for name, in := range map[string]func(int) string{
		"dots": func(n int) string { return tree(n, `"llm.model_name":"m",`) },
		"attributes": func(n int) string {
			return strings.Repeat(`{"attributes":{"simulations":[`, n) + "{}" + strings.Repeat(`]}}`, n)
		},
	} {
		require.Less(t, allocated(in(2000)), 3*allocated(in(1000)), name)
	}
}

// What resembles a call and is none, or is in no form that is read.
func TestNoCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"arguments of an event":                 {`{"type":"tool.execution_start","data":{"arguments":{"name":"x","arguments":{}}}}`, string(recorded.SkippedUnknown)},
		"a prompt of MCP":                       {`{"name":"x","arguments":[{"name":"a"}]}`, string(recorded.SkippedUnknown)},
		"a call that the provider runs":         {`{"role":"assistant","content":[{"type":"mcp_call","id":"m","name":"x","arguments":"{}"},{"type":"server_tool_use","id":"s","name":"x","input":{}}]}`, string(recorded.SkippedNoCalls)},
		"a task":                                {`{"name":"x","input":"text","expected":1}`, string(recorded.SkippedUnknown)},
		"ui_messages":                           {`{"ts":1,"type":"say","say":"tool","text":"{\"tool\":\"readFile\"}"}`, string(recorded.SkippedUnknown)},
		"a tool":                                {`{"name":"x","parameters":{"type":"object"}}`, string(recorded.SkippedUnknown)},
		"a tool span":                           {`{"run_type":"tool","id":"r","inputs":{"name":"x","arguments":{}}}`, string(recorded.SkippedNoCalls)},
		"a result":                              {`{"role":"tool","tool_call_id":"c","content":[{"type":"tool_use","id":"x","name":"y","input":{}}]}`, string(recorded.SkippedNoCalls)},
		"the user's call":                       {`{"role":"user","content":[{"type":"tool_use","id":"x","name":"y","input":{}}]}`, string(recorded.SkippedNoCalls)},
		"a HAR without an answer":               {`{"log":{"entries":[{"request":{"method":"POST","url":"https://h.test/v1/chat/completions","postData":{"text":"{\"messages\":[]}"}},"response":{"status":0,"content":{"size":0}}}]}}`, string(recorded.SkippedNoCalls)},
		"another request":                       {`{"request":{"method":"POST","url":"https://h.test/v1/embeddings","body":{"input":"x"}},"response":{"status":200,"body":{"data":[]}}}`, string(recorded.SkippedNoCalls)},
		"dots":                                  {`{"llm.output_messages.` + strings.Repeat("a.", 65) + `a":1}`, string(recorded.SkippedUnknown)},
		"an event of OpenAI Responses":          {`{"type":"response.output_item.done","item":{"type":"mcp_tool_call"}}`, string(recorded.SkippedUnknown)},
		"a call that the AI SDK's provider ran": {`{"role":"assistant","parts":[{"type":"tool-search","toolCallId":"c","state":"output-available","providerExecuted":true,"input":{}}]}`, string(recorded.SkippedNoCalls)},
		"a stream of Bedrock":                   {`{"modelId":"m","output":{"outputBodyJson":[{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"add","input":{}}}]}}`, string(recorded.SkippedUnknown)},
		"an event that is not of Codex":         {`{"timestamp":"T","type":"answer","payload":{"type":"x","choices":[{"message":` + chatMessage + `}]}}`, string(recorded.SkippedUnknown)},
		"an event of no form":                   {`{"type":"message_start","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"add","arguments":{}}]}}`, string(recorded.SkippedUnknown)},
		"a Chrome trace":                        {`{"name":"RunTask","ph":"X","args":{}}`, string(recorded.SkippedUnknown)},
		"an answer in another form":             {`{"kind":"x","parts":[],"choices":[{"message":` + chatMessage + `}]}`, string(recorded.SkippedUnread)},
		"calls in an exchange's request":        {`{"request":{"method":"POST","url":"/v1/chat/completions","body":{"messages":[` + chatMessage + `]}},"response":{"status":200,"body":{"choices":[{"message":{"content":"hi"}}]}}}`, string(recorded.SkippedNoCalls)},
		"calls in the input of an answer":       {`{"type":"llm","input":{"messages":[` + chatMessage + `]},"output":{"choices":[{"message":{"content":"hi"}}]}}`, string(recorded.SkippedNoCalls)},
		"lists too deep":                        {deep(33), string(recorded.SkippedUnknown)},
		"a failure in a log of Helicone":        {`{"request_body":{"messages":[]},"response_body":{"error":{"message":"x"}}}`, string(recorded.SkippedNoCalls)},
		"Cline before 2026":                     {`{"role":"assistant","content":[{"type":"text","text":"<read_file><path>a</path></read_file>"}]}`, string(recorded.SkippedNoCalls)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, skipped, errs := read(t, recorded.NewLog(), "f", c.text)
			require.Empty(t, got)
			require.Empty(t, errs)
			require.Equal(t, []string{c.want}, skipped)
		})
	}
}
