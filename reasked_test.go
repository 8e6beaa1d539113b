package toolmend_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/wire"
)

// recordedExchange is one recorded request and its answer.
type recordedExchange struct {
	ID, Path, Request, Response, Format string
	Status                              int
}

// recordings reads the exchanges of a file, which is beside the repository; where it is not, the
// test is skipped.
func recordings(t *testing.T, name string) (all []recordedExchange) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "shared", "data", "wire", name+".jsonl.gz"))
	if os.IsNotExist(err) {
		t.Skip("the recorded exchanges are not here")
	}
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	require.NoError(t, err)
	for d := json.NewDecoder(z); ; {
		var x recordedExchange
		err := d.Decode(&x)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, x)
	}
}

// read returns the recorded request and answer. It returns false for those that no format reads.
func (x recordedExchange) read() (req *middleware.Request, model middleware.ModelCall, ok bool) {
	at := slices.IndexFunc(wire.Codecs(), func(c wire.Codec) bool { return c.MatchPath(x.Path) })
	if at < 0 || x.Format == "eventstream" { // binary frames
		return nil, nil, false
	}
	codec := wire.Codecs()[at]
	req, err := codec.DecodeRequest([]byte(x.Request))
	if err != nil {
		return nil, nil, false
	}
	var resp *middleware.Response
	if x.Status >= http.StatusBadRequest {
		err = codec.DecodeError(x.Status, nil, []byte(x.Response))
	} else {
		resp, err = codec.DecodeResponse(req, []byte(x.Response))
	}
	return req, func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, err }, true
}

// recordedFault is a recorded answer whose message is invalid, apart from the arguments of its calls.
type recordedFault struct {
	index int // in its file
	code  string
	asked bool   // the chain asks again
	why   string // that is right
}

// TestRecordedReasks: of what providers really answered, the chain finds no message wrong but these. None is empty.
func TestRecordedReasks(t *testing.T) {
	t.Parallel()
	codes := []string{"empty", "unread_call", "tool_choice", "parallel_calls", "truncated"}
	chain := toolmend.Stack(toolmend.Options{
		Validator: argsvalidate.NewValidator(argsvalidate.Options{OnExhausted: middleware.Pass}),
		Retry:     retry.Options{MaxAttempts: 1},
	})
	for name, c := range map[string]struct {
		read   int // exchanges that a format reads
		faults []recordedFault
	}{
		"openai-chat": {1624, []recordedFault{
			{794, "tool_choice", true, `tool_choice is "required", and the answer has no call, and no text`},
			{1263, "truncated", false, "the length limit was reached in the call; the request states none that could be raised, so the answer is only marked"},
			{1466, "unread_call", true, "Groq refuses the call of its model: status 400, tool_use_failed"},
			{1469, "unread_call", true, "the same, as an event of a stream"},
		}},
		"openai-responses": {778, []recordedFault{
			{168, "truncated", true, "max_output_tokens was reached in the arguments of the call, and can be doubled"},
		}},
		"anthropic-messages":  {745, nil},
		"anthropic-elsewhere": {18, nil},
		"gemini-generate":     {608, nil},
		"ollama-chat":         {85, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, found := 0, []recordedFault(nil)
			for i, x := range recordings(t, name) {
				req, model, ok := x.read()
				if !ok {
					continue
				}
				read++
				first := middleware.ReportOf(chain(model)(t.Context(), req)).Attempts[0]
				issues := first.Issues
				for _, v := range first.Verdicts {
					issues = slices.Concat(issues, v.Issues)
				}
				for _, at := range issues {
					if slices.Contains(codes, at.Code) {
						found = append(found, recordedFault{index: i, code: at.Code, asked: len(first.Replies) > 0})
					}
				}
			}
			for i := range c.faults {
				c.faults[i].why = ""
			}
			require.Equal(t, c.faults, found)
			require.Equal(t, c.read, read)
		})
	}
}
