package responses_test

import (
	"encoding/json"
	"strings"
)

// eventStream returns events as the provider writes them.
func eventStream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var o struct{ Type string }
		if err := json.Unmarshal([]byte(e), &o); err != nil {
			panic(err)
		}
		b.WriteString("event: " + o.Type + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

// talkative is a stream with reasoning, a text, reasoning again and a call.
var talkative = eventStream(
	`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"m","output":[]}}`,
	`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","model":"m","output":[]}}`,
	`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
	`{"type":"response.reasoning_summary_text.delta","sequence_number":3,"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"Look "}`,
	`{"type":"response.reasoning_summary_text.delta","sequence_number":4,"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"first."}`,
	`{"type":"response.reasoning_summary_text.delta","sequence_number":5,"output_index":0,"item_id":"rs_1","summary_index":1,"delta":"Then ask."}`,
	`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look first."},{"type":"summary_text","text":"Then ask."}],"encrypted_content":"AA=="}}`,
	`{"type":"response.output_item.added","sequence_number":7,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
	`{"type":"response.content_part.added","sequence_number":8,"output_index":1,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
	`{"type":"response.output_text.delta","sequence_number":9,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"Let me ","obfuscation":"x8"}`,
	`{"type":"response.output_text.delta","sequence_number":10,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"see.","obfuscation":"y"}`,
	`{"type":"response.output_text.done","sequence_number":11,"output_index":1,"item_id":"msg_1","content_index":0,"text":"Let me see."}`,
	`{"type":"response.content_part.done","sequence_number":12,"output_index":1,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"Let me see.","annotations":[]}}`,
	`{"type":"response.output_item.done","sequence_number":13,"output_index":1,"item":`+talkativeMessage+`}`,
	`{"type":"response.output_item.added","sequence_number":14,"output_index":2,"item":{"id":"rs_1b","type":"reasoning","summary":[]}}`,
	`{"type":"response.output_item.done","sequence_number":15,"output_index":2,"item":{"id":"rs_1b","type":"reasoning","summary":[],"encrypted_content":"BB=="}}`,
	`{"type":"response.output_item.added","sequence_number":16,"output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":"","status":"in_progress"}}`,
	`{"type":"response.function_call_arguments.delta","sequence_number":17,"output_index":3,"item_id":"fc_1","delta":"","obfuscation":"q"}`,
	`{"type":"response.function_call_arguments.delta","sequence_number":18,"output_index":3,"item_id":"fc_1","delta":"{\"city\":"}`,
	`{"type":"response.function_call_arguments.delta","sequence_number":19,"output_index":3,"item_id":"fc_1","delta":"7}"}`,
	`{"type":"response.function_call_arguments.done","sequence_number":20,"output_index":3,"item_id":"fc_1","name":"weather","arguments":"{\"city\":7}"}`,
	`{"type":"response.output_item.done","sequence_number":21,"output_index":3,"item":`+talkativeCall+`}`,
	`{"type":"response.completed","sequence_number":22,"response":{"id":"resp_1","status":"completed","incomplete_details":null,"model":"m","output":[`+
		`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look first."},{"type":"summary_text","text":"Then ask."}],"encrypted_content":"AB=="},`+
		talkativeMessage+`,{"id":"rs_1b","type":"reasoning","summary":[],"encrypted_content":"BC=="},`+talkativeCall+`],`+
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":16},"x_new":1.0}}`,
)

const (
	talkativeMessage = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me see.","annotations":[]}]}`
	talkativeCall    = `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":7}","status":"completed","x_new":true}`
)
