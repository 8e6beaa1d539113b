package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/mcpcheck"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Validate returns a middleware for MCP servers. It validates the arguments of
// each call before the tool runs, and repairs mistakes that have only one
// possible fix:
//
//	server.AddReceivingMiddleware(mcp.Validate(argsvalidate.Options{}))
//
// The tool receives the repaired arguments. A call that stays invalid does not
// reach it: the client gets a result with IsError, whose text of at most 8 KiB
// is the text of a re-ask of package argsvalidate. A valid call arrives as it was
// sent. A call of a tool that the server does not list goes on to the server,
// unless mend.ToolName corrects its name.
//
// Structured content of a result is validated against the tool's OutputSchema.
// A violation is a note in the report of the step, and the result stays as it
// is.
//
// Two options have defaults of their own: Strip is strip.WhenInvalid, and
// Limits.Bytes is 16 MiB. MaxAttempts, OnExhausted, UnknownTools, Batch,
// FreshOnRepeat and LastTurnOnly have no effect, because no model is called. A
// rule that cannot decide is an error of the protocol. Validate panics with the
// error of o.Validate.
//
// Each of around sees a call as one model step, with the tool's run inside it,
// and must call next once: tracing.New counts calls and faults by tool, and makes
// a span with their repairs and issues. Its metric of the duration of model calls
// gets no value.
//
// The schemas are those that the rest of the server lists for the session, so a
// tool that changes is validated by its new schema. The middleware is safe for
// concurrent use.
//
// Position: outside middlewares that list tools or read the arguments of a call.
// AddReceivingMiddleware puts each call's middlewares outside those of earlier
// calls.
func Validate(o argsvalidate.Options, around ...middleware.Middleware) sdk.Middleware {
	v := &validator{check: mcpcheck.New(mcpcheck.Options{Args: o}), around: middleware.Chain(around...)}
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if call, ok := req.(*sdk.CallToolRequest); ok && call.Params != nil {
				return v.call(ctx, next, method, call)
			}
			return next(ctx, method, req)
		}
	}
}

// validator is the state of Validate.
type validator struct {
	check  *mcpcheck.Checker
	around middleware.Middleware
}

// call handles one tools/call.
func (v *validator) call(ctx context.Context, next sdk.MethodHandler, method string, req *sdk.CallToolRequest) (sdk.Result, error) {
	tools, err := v.tools(ctx, next, req)
	if err != nil { // there is nothing to validate by
		return next(ctx, method, req)
	}
	args := string(req.Params.Arguments)
	if args == "" {
		args = "{}"
	}
	call := middleware.ToolCall{Name: req.Params.Name, Arguments: args}
	declared := make([]middleware.Tool, len(tools))
	for i, t := range tools {
		declared[i] = t.Def
	}
	var res sdk.Result
	step := v.around(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		resp := &middleware.Response{Message: middleware.Assistant("", call)}
		// A duration below zero keeps the run of a tool out of the metric of model calls.
		attempt := middleware.Attempt{Message: resp.Message, Start: time.Now(), Duration: -1}
		out, err := v.check.Call(ctx, tools, call)
		if err != nil {
			return nil, err
		}
		attempt.Verdicts = []middleware.Verdict{out.Verdict}
		resp.Report = middleware.Report{Status: middleware.StatusOf(attempt.Verdicts), Attempts: []middleware.Attempt{attempt}}
		if out.Action == mcpcheck.Refuse {
			res = &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: out.Text}}}
			return resp, nil
		}
		if out.Action == mcpcheck.Change {
			r, p := *req, *req.Params
			p.Name, p.Arguments = out.Call.Name, json.RawMessage(out.Call.Arguments)
			req, r.Params = &r, &p
		}
		if res, err = next(ctx, method, req); err == nil {
			resp.Report.Notes = v.violations(out.Tool, res)
		}
		return resp, err
	})
	if _, err := step(ctx, &middleware.Request{Tools: declared}); err != nil {
		return nil, err
	}
	return res, nil
}

// tools returns the tool that a call names, or all tools if there is no such
// tool. It lists them as a client does.
func (v *validator) tools(ctx context.Context, next sdk.MethodHandler, req *sdk.CallToolRequest) ([]mcpcheck.Tool, error) {
	var all []*sdk.Tool
	for cursor, n := "", 0; n < maxPages; n++ {
		list := &sdk.ListToolsRequest{Session: req.Session, Params: &sdk.ListToolsParams{Meta: req.Params.Meta, Cursor: cursor}, Extra: req.Extra}
		res, err := next(ctx, "tools/list", list)
		page, ok := res.(*sdk.ListToolsResult)
		if err != nil || !ok {
			return nil, fmt.Errorf("mcp: listing the tools: %w", err)
		}
		for _, t := range page.Tools {
			if t != nil && t.Name == req.Params.Name {
				return readTools([]*sdk.Tool{t}), nil
			}
		}
		all = append(all, page.Tools...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	return readTools(all), nil
}

// readTools returns tools as the validator reads them.
func readTools(tools []*sdk.Tool) []mcpcheck.Tool {
	var out []mcpcheck.Tool
	for _, t := range tools {
		if text, err := rawjson.Marshal(t); err == nil {
			if got, ok := mcpcheck.Read(string(text)); ok {
				out = append(out, got)
			}
		}
	}
	return out
}

// violations returns a note if the result violates the schema of the tool's
// results.
func (v *validator) violations(tool mcpcheck.Tool, res sdk.Result) []string {
	r, ok := res.(*sdk.CallToolResult)
	if !ok || r == nil || r.IsError || r.StructuredContent == nil || len(tool.Output) == 0 {
		return nil
	}
	text, _ := rawjson.Marshal(r.StructuredContent) // "" if it cannot be marshalled: Notes then adds nothing
	return v.check.Notes(tool, string(text))
}
