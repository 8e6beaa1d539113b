package tracing

import "github.com/toolmend/toolmend/middleware"

// The scope of our tracer and meter.
const scope = "github.com/toolmend/toolmend/tracing"

// Names of the GenAI conventions, v0.1.0 of the repository semantic-conventions-genai of
// OpenTelemetry (status: development). They are written out here because
// go.opentelemetry.io/otel/semconv has none from v1.42.0 on.
const (
	chat = "chat" // operation, and the name of the attempt's span

	operationName  = "gen_ai.operation.name"
	providerName   = "gen_ai.provider.name"
	requestModel   = "gen_ai.request.model"
	requestTokens  = "gen_ai.request.max_tokens"
	requestTemp    = "gen_ai.request.temperature"
	requestStop    = "gen_ai.request.stop_sequences"
	requestStream  = "gen_ai.request.stream"
	responseID     = "gen_ai.response.id"
	responseModel  = "gen_ai.response.model"
	responseFinish = "gen_ai.response.finish_reasons"
	inputMessages  = "gen_ai.input.messages"
	outputMessages = "gen_ai.output.messages"
	toolName       = "gen_ai.tool.name"
	toolCallID     = "gen_ai.tool.call.id"
	conversationID = "gen_ai.conversation.id"
	responseFirst  = "gen_ai.response.time_to_first_chunk" // s
	tokenModality  = "gen_ai.token.modality"
	unknown        = "unknown" // usage does not tell modalities apart

	inferencePrefix = "gen_ai.client.inference."
	agentDuration   = "gen_ai.invoke_agent.duration" // s
	toolDuration    = "gen_ai.execute_tool.duration" // s
)

// Names of the general conventions (semantic conventions 1.41.0, "error").
const (
	errorTypeKey = "error.type"
	other        = "_OTHER" // what has no name of its own
)

// The buckets that the conventions advise.
var (
	agentBuckets    = []float64{.1, .2, .4, .8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	durationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// Values of error.type. Other values are HTTP statuses, providers' codes and
// Go types.
const (
	typeCanceled   = "context_canceled"
	typeTimeout    = "timeout"
	typeInvalid    = "invalid_tool_call"
	typeRule       = "rule_failed"
	typeNoResponse = "no_response"
	typePanic      = "panic"
)

// Our own names.
const (
	modelStep = "model_step" // the step's span

	attemptKey       = "toolmend.attempt" // counted from 1
	attemptsKey      = "toolmend.attempts"
	statusKey        = "toolmend.status"
	finalKey         = "toolmend.final_attempt" // counted from 1; left out where there is none
	invalidCallsKey  = "toolmend.invalid_calls"
	notesKey         = "toolmend.notes"
	droppedKey       = "toolmend.events.dropped"
	inputDropped     = "toolmend.input.dropped"  // parts of the messages
	outputDropped    = "toolmend.output.dropped" // parts of the answer
	errorCodeKey     = "toolmend.error.code"     // the provider's own
	issueCodeKey     = "toolmend.issue.code"
	issueMessageKey  = "toolmend.issue.message" // content
	pointerKey       = "toolmend.pointer"
	changeByKey      = "toolmend.change.by"
	changeBeforeKey  = "toolmend.change.before" // content
	changeAfterKey   = "toolmend.change.after"  // content
	repliesKey       = "toolmend.replies"
	feedbackKey      = "toolmend.feedback.text" // content
	noteKey          = "toolmend.note"
	statusNone       = "none" // there was no call
	eventAttemptFail = "toolmend.attempt_failed"
	eventIssue       = "toolmend.issue"
	eventChange      = "toolmend.change"
	eventFeedback    = "toolmend.feedback"
	eventNote        = "toolmend.note"

	counterSteps     = "toolmend.steps"
	counterAttempts  = "toolmend.attempts"
	counterInvalid   = "toolmend.invalid_calls"
	counterExhausted = "toolmend.exhausted_steps"
)

// The names of the usage of an attempt, by the conventions, and of a step; and of the counters.
var attemptUsage, stepUsage, usageCounters = usageNames("gen_ai.usage."), usageNames("toolmend.usage."), usageNames(inferencePrefix + "usage.")

// tokensOf returns the numbers of tokens in the order of usageNames. None is negative.
func tokensOf(u middleware.Usage) [5]int64 {
	u = middleware.Usage{}.Add(u)
	return [...]int64{u.InputTokens, u.OutputTokens, u.Cached, u.CacheWrite, u.Reasoning}
}

// usageNames returns names in the order of tokensOf.
func usageNames(prefix string) [5]string {
	return [...]string{prefix + "input_tokens", prefix + "output_tokens", prefix + "cache_read.input_tokens",
		prefix + "cache_write.input_tokens", prefix + "reasoning.output_tokens"}
}

// Bounds of what is recorded.
const (
	maxEvents  = 128       // of one step, in its span and in its log
	maxValue   = 8 << 10   // bytes of one content value
	maxContent = 256 << 10 // bytes of content in one attribute
	maxLabel   = 128       // bytes of a name, code or pointer
	maxList    = 16        // entries of a list: stop sequences, the issues of one log record
)
