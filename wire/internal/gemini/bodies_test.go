package gemini_test

// Bodies for the tests, made up.

const plainRequest = `{"contents":[{"parts":[{"text":"Is it windy in Bergen?"}],"role":"user"}]}`

const fullRequest = `{
  "systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}]},
  "contents": [
    {"role": "user", "parts": [{"text": "Wind in Bergen and Oslo?"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}]},
    {"role": "model", "parts": [
      {"text": "thinking", "thought": true},
      {"functionCall": {"name": "wind", "args": {"city": "Bergen", "n": 12345678901234567890}}, "thoughtSignature": "c2ln"},
      {"functionCall": {"name": "wind", "args": {"city":"Oslo"}}},
      {"text": "", "thoughtSignature": "dHdv"}
    ]},
    {"role": "user", "parts": [
      {"functionResponse": {"name": "wind", "response": {"result": "6 m/s"}}},
      {"functionResponse": {"name": "wind", "response": {"error": "no such place"}}},
      {"text": "So?"}
    ]}
  ],
  "tools": [
    {"functionDeclarations": [{"name": "wind", "description": "Wind.", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": true}}}}]},
    {"googleSearch": {}}
  ],
  "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
  "generationConfig": {"temperature": 1.0, "maxOutputTokens": 100, "stopSequences": ["END"], "topK": 4},
  "safetySettings": []
}`

const snakeRequest = `{"contents":[` +
	`{"role":"user","parts":{"text":"Go"}},` +
	`{"role":"model","parts":[{"function_call":{"id":"a1","name":"wind","args":{}},"thought_signature":"c2ln"}]},` +
	`{"role":"function","parts":[{"function_response":{"id":"a1","name":"wind","response":{"output":"calm"},"parts":[{"inline_data":{"mime_type":"image/png","data":"iVBORw"}}]}}]}],` +
	`"system_instruction":{"parts":{"text":"Short."}},"generation_config":{"max_output_tokens":5},"tool_config":{"function_calling_config":{"mode":"none"}}}`

const callAnswer = `{
  "candidates": [
    {
      "content": {
        "parts": [
          {"text": "Let me look."},
          {
            "functionCall": {
              "name": "wind",
              "args": {"city": "Bergen"}
            },
            "thoughtSignature": "c2ln"
          }
        ],
        "role": "model"
      },
      "finishReason": "STOP",
      "index": 0,
      "finishMessage": "Model generated function call(s)."
    }
  ],
  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "toolUsePromptTokenCount": 3, "totalTokenCount": 25, "thoughtsTokenCount": 7, "cachedContentTokenCount": 4},
  "modelVersion": "gemini-x",
  "responseId": "r-1"
}
`

// eventStream frames chunks as the provider does.
func eventStream(chunks ...string) string {
	out := ""
	for _, c := range chunks {
		out += "data: " + c + "\r\n\r\n"
	}
	return out
}

var callStream = eventStream(
	`{"candidates": [{"content": {"parts": [{"text": "hm","thought": true}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 10,"totalTokenCount": 10},"modelVersion": "gemini-x","responseId": "r-1"}`,
	`{"candidates": [{"content": {"parts": [{"text": "Let me "}],"role": "model"},"index": 0}],"modelVersion": "gemini-x","responseId": "r-1"}`,
	`{"candidates": [{"content": {"parts": [{"text": "look."}],"role": "model"},"index": 0}],"modelVersion": "gemini-x","responseId": "r-1"}`,
	`{"candidates": [{"content": {"parts": [{"functionCall": {"name": "wind","args": {"city": "Bergen"}},"thoughtSignature": "c2ln"}],"role": "model"},"index": 0}],"modelVersion": "gemini-x","responseId": "r-1"}`,
	`{"candidates": [{"content": {"parts": [{"functionCall": {"name": "wind","args": {"city": "Oslo"}}}],"role": "model"},"index": 0}],"modelVersion": "gemini-x","responseId": "r-1"}`,
	`{"candidates": [{"content": {"parts": [{"text": "","thoughtSignature": "dHdv"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 10,"candidatesTokenCount": 6,"totalTokenCount": 16},"modelVersion": "gemini-x","responseId": "r-1"}`,
)

const arrayStream = `[{
  "candidates": [{"content": {"role": "model", "parts": [{"text": "Let me look."}]}}],
  "responseId": "r-1"
}
,
{
  "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "wind", "args": {"city": "Bergen"}}}]}, "finishReason": 1}],
  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 6},
  "responseId": "r-1"
}
]`

// laterStream is the answer to a re-ask.
var laterStream = eventStream(
	`{"candidates": [{"content": {"parts": [{"text": "Again: "}],"role": "model"},"index": 0}],"responseId": "r-2"}`,
	`{"candidates": [{"content": {"parts": [{"functionCall": {"name": "wind","args": {"city": "Tromsø"}}}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 30,"candidatesTokenCount": 8},"responseId": "r-2"}`,
)

// partialStream has a call whose arguments come in pieces.
var partialStream = eventStream(
	`{"candidates": [{"content": {"role": "model","parts": [{"functionCall": {"name": "wind","willContinue": true},"thoughtSignature": "c2ln"}]}}],"responseId": "r-1"}`,
	`{"candidates": [{"content": {"role": "model","parts": [{"functionCall": {"partialArgs": [{"jsonPath": "$.place.city","stringValue": "Ber","willContinue": true}],"willContinue": true}}]}}],"responseId": "r-1"}`,
	`{"candidates": [{"content": {"role": "model","parts": [{"functionCall": {"partialArgs": [{"jsonPath": "$.place.city","stringValue": "gen"},{"jsonPath": "$.days[0]","numberValue": 3},{"jsonPath": "$['a b']","boolValue": true}],"willContinue": true}}]}}],"responseId": "r-1"}`,
	`{"candidates": [{"content": {"role": "model","parts": [{"functionCall": {}}]},"finishReason": "STOP"}],"responseId": "r-1"}`,
)
