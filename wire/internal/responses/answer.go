package responses

import (
	"cmp"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// answer is the handle of a response: one object, or the events of a stream.
type answer struct {
	body   string
	env    rawjson.Value // the response object, of a stream that of the last event
	msg    *message
	native *middleware.Native // of the message
	was    middleware.Response
	stream *events         // nil: the body is the object
	copies []rawjson.Value // of the items of a stream: what stands in env; absent: nothing
	kept   []int           // of the items of a stream: their flow; -1: they are only in env
}

// newAnswer reads the response object env. items are those of the message, in
// order; of a stream they are not the ones that stand in env, but these are
// copies of them.
func newAnswer(body string, env rawjson.Value, items, copies []rawjson.Value) (*middleware.Response, *answer, error) {
	a := &answer{body: body, env: env, copies: copies}
	raws := make([]string, len(items))
	for i, v := range items {
		raws[i] = v.Raw()
	}
	m, err := readTurn(slices.Values(items), codec.Array(raws), true)
	if err != nil {
		return nil, nil, err
	}
	a.native = m.Native
	a.msg = m.Native.Ref.(*message)
	a.msg.unstored = env.Get("store").Raw() == "false"
	resp := &middleware.Response{Message: m}
	resp.Model, resp.Usage = codec.Text(env.Get("model")), readUsage(env.Get("usage"))
	resp.FinishReason = finish(env, len(m.ToolCalls))
	resp.Native = native(body, a)
	a.was = middleware.Response{FinishReason: resp.FinishReason, Model: resp.Model, Usage: resp.Usage}
	return resp, a, nil
}

// finish reads status and incomplete_details. A status without a neutral word,
// such as that of an answer in the background, is passed on.
func finish(env rawjson.Value, calls int) middleware.FinishReason {
	status := codec.Text(env.Get("status"))
	switch status {
	case "completed", "":
		if calls > 0 {
			return middleware.FinishToolCalls
		}
		return middleware.FinishStop
	case "incomplete":
		switch reason := env.Get("incomplete_details").Get("reason").Str(); reason {
		case "max_output_tokens":
			return middleware.FinishLength
		case "content_filter":
			return middleware.FinishFilter
		default:
			return middleware.FinishReason(cmp.Or(reason, status))
		}
	}
	return middleware.FinishReason(status)
}

func readUsage(v rawjson.Value) middleware.Usage {
	in, out := v.Get("input_tokens_details"), v.Get("output_tokens_details")
	return middleware.Usage{
		Input: codec.Int(v.Get("input_tokens")), Cached: codec.Int(in.Get("cached_tokens")), CacheWrite: codec.Int(in.Get("cache_write_tokens")),
		Output: codec.Int(v.Get("output_tokens")), Reasoning: codec.Int(out.Get("reasoning_tokens")),
	}
}

// whole reads a body that is no stream.
func whole(body string) (*middleware.Response, *answer, error) {
	root, err := codec.ParseObject(body)
	if err == nil {
		err = answerEnvelope.Check(root)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := failed(root); err != nil {
		return nil, nil, err
	}
	output := root.Get("output")
	if output.Kind() != rawjson.Array {
		return nil, nil, codec.Shapef("a body without an output")
	}
	return newAnswer(body, root, slices.Collect(output.Each()), nil)
}

// failed returns the error that a response object holds in the place of an
// answer, with what it has cost. A failure that has calls beside it is neither:
// some clients would run them.
func failed(env rawjson.Value) error {
	e := env.Get("error")
	if env.Get("status").Str() != "failed" && (absent(e) || env.Get("output").Kind() == rawjson.Array) {
		return nil
	}
	if err := uncalled(env); err != nil {
		return err
	}
	f, _ := failure(env)
	u := readUsage(env.Get("usage"))
	if u == (middleware.Usage{}) {
		return inAnswer(f)
	}
	return codec.WithUsage(inAnswer(f), codec.Text(env.Get("model")), u)
}

// uncalled returns an error if a response object that has failed holds calls.
func uncalled(env rawjson.Value) error {
	if calls, err := callsIn(env); len(calls) > 0 || err != nil {
		return codec.Shapef("calls in a response that has failed")
	}
	return nil
}

// answerOf returns the handle behind a response.
func answerOf(resp *middleware.Response) (*answer, error) {
	a, err := codec.Handle(resp.Native, dialect, func(raw string) (*answer, error) {
		again, err := codec.Decode(Format{}.NewStream(nil, nil), []byte(raw))
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*answer), nil
	})
	if err == nil && a == nil {
		err = codec.Unencodablef("a response that was not decoded from this format")
	}
	return a, err
}
