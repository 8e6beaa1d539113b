package tracing

// The scope of our tracer and meter.
const scope = "github.com/toolmend/toolmend/tracing"

// Names of the GenAI conventions: opentelemetry.io/docs/specs/semconv/gen-ai,
// as of semantic conventions 1.41.0 (status: development). They are written
// out here because go.opentelemetry.io/otel/semconv has none from v1.42.0 on.
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
	tokenType      = "gen_ai.token.type"
	tokenInput     = "input"
	tokenOutput    = "output"

	operationDuration = "gen_ai.client.operation.duration" // s
	tokenUsage        = "gen_ai.client.token.usage"        // {token}
)

// Names of the general conventions (semantic conventions 1.41.0, "error").
const (
	errorTypeKey = "error.type"
	other        = "_OTHER" // what has no name of its own
)

// The buckets that the conventions advise: gen-ai-metrics.md, 1.41.0.
var (
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

// The names of the usage of an attempt, by the conventions, and of a step.
var attemptUsage, stepUsage = usageNames("gen_ai.usage."), usageNames("toolmend.usage.")

// usageNames returns names in the order of appendUsage.
func usageNames(prefix string) [5]string {
	return [...]string{prefix + "input_tokens", prefix + "output_tokens", prefix + "cache_read.input_tokens",
		prefix + "cache_creation.input_tokens", prefix + "reasoning.output_tokens"}
}

// Bounds of what is recorded.
const (
	maxEvents  = 128       // of one step, in its span and in its log
	maxValue   = 8 << 10   // bytes of one content value
	maxContent = 256 << 10 // bytes of content in one attribute
	maxLabel   = 128       // bytes of a name, code or pointer
	maxList    = 16        // entries of a list: stop sequences, the issues of one log record
)
