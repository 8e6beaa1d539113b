package temporalagent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// What is in this file is stored in the histories of running agents: members are
// only ever added.

// conversation is a State whose beginning may be in the blob store.
type conversation struct {
	Before before          `json:"before,omitzero"`
	State  json.RawMessage `json:"state"` // of agentloop; long strings are references
}

// before is the part of a State that is in the blob store: a chain of segments.
type before struct {
	Key      string `json:"key,omitzero"` // of the last segment
	Messages int    `json:"messages,omitzero"`
	Steps    int    `json:"steps,omitzero"`
	Results  int    `json:"results,omitzero"`
}

// segment is a part of a State in the blob store.
type segment struct {
	Prev  string          `json:"prev,omitzero"`
	State json.RawMessage `json:"state"`
}

// ended is where a workflow has stopped.
type ended struct {
	conversation
	Inbox []middleware.Message `json:"inbox,omitzero"` // messages of the user that are not in the conversation yet
}

// startInput is what the workflow gets.
type startInput struct {
	Agent string `json:"agent"`
	ended
}

// stepInput is what the activities that change a State get.
type stepInput struct {
	Agent string `json:"agent"`
	conversation
}

// stepOutput is what they return: how the State has changed.
type stepOutput struct {
	Before   *before         `json:"before,omitzero"` // if it has changed
	Keep     int             `json:"keep,omitzero"`   // how many of the messages that the input had stay
	State    json.RawMessage `json:"state,omitzero"`  // the further messages, steps and results, and all else; nil: nothing has changed
	Last     bool            `json:"last,omitzero"`
	Canceled bool            `json:"canceled,omitzero"`
	Error    *failure        `json:"error,omitzero"`
}

// toolInput and toolOutput are the input and the output of a tool call.
type toolInput struct {
	Agent  string              `json:"agent"`
	Call   middleware.ToolCall `json:"call"`
	Key    string              `json:"key"`
	Marks  marks               `json:"marks,omitzero"`
	Schema string              `json:"schema,omitzero"`
	Room   int                 `json:"room,omitzero"` // a result over this many bytes goes to the store; 0: blobSize
}

type marks struct {
	Serial     bool `json:"serial,omitzero"`
	AtMostOnce bool `json:"at_most_once,omitzero"`
	Pure       bool `json:"pure,omitzero"`
}

type toolOutput struct {
	Text      string   `json:"text,omitzero"`
	IsError   bool     `json:"is_error,omitzero"`
	Suspended bool     `json:"suspended,omitzero"` // Text is the reason
	Canceled  bool     `json:"canceled,omitzero"`
	Error     *failure `json:"error,omitzero"` // it ends the run
}

// sizeOf returns how many bytes v has in the history, where a character of a text
// may take six.
func sizeOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // the SDK will say so
	}
	return len(b)
}

// begin returns the conversation with which a run begins. If it is too long for
// the history and there is a store, all but the last message are in the store.
func (b *blobs) begin(ctx context.Context, msgs []middleware.Message) (conversation, error) {
	doc, err := b.packed(ctx, msgs)
	if err != nil || b.store == nil || len(doc) <= maxValue {
		return conversation{State: doc}, err
	}
	last := len(msgs) - 1
	first, err := b.packed(ctx, msgs[:last])
	if err != nil {
		return conversation{}, err
	}
	key, err := b.putSegment(ctx, segment{State: first})
	if err != nil {
		return conversation{}, err
	}
	doc, err = b.packed(ctx, msgs[last:])
	return conversation{before{Key: key, Messages: last}, doc}, err
}

func (b *blobs) packed(ctx context.Context, msgs []middleware.Message) ([]byte, error) {
	return b.packJSON(ctx, &agentloop.State{Messages: msgs})
}

// packJSON returns v as JSON, with references for its long strings.
func (b *blobs) packJSON(ctx context.Context, v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return b.pack(ctx, doc)
}

func (b *blobs) putSegment(ctx context.Context, s segment) (key string, err error) {
	doc, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return b.put(ctx, doc)
}

// open returns the whole State.
func (b *blobs) open(ctx context.Context, c conversation) (*agentloop.State, error) {
	var parts []*agentloop.State
	read := func(doc []byte) error {
		doc, err := b.unpack(ctx, doc)
		if err != nil {
			return err
		}
		s := new(agentloop.State)
		parts = append(parts, s)
		return json.Unmarshal(doc, s)
	}
	if err := read(c.State); err != nil {
		return nil, err
	}
	for key := c.Before.Key; key != ""; {
		doc, err := b.get(ctx, key)
		if err != nil {
			return nil, err
		}
		var seg segment
		if err := json.Unmarshal(doc, &seg); err != nil {
			return nil, fmt.Errorf("temporalagent: blob %s: %w", key, err)
		}
		if err := read(seg.State); err != nil {
			return nil, err
		}
		key = seg.Prev
	}
	s := parts[0]
	var messages []middleware.Message
	var steps []agentloop.StepRecord
	var results []agentloop.ToolResult
	for _, part := range slices.Backward(parts) {
		messages = append(messages, part.Messages...)
		steps = append(steps, part.Steps...)
		results = append(results, part.Results...)
	}
	s.Messages, s.Steps, s.Results = messages, steps, results
	return s, nil
}

// extent is how much there is of a State.
type extent struct {
	messages []middleware.Message
	steps    int
	results  int
}

func extentOf(s *agentloop.State) extent {
	return extent{slices.Clone(s.Messages), len(s.Steps), len(s.Results)}
}

// difference returns how s differs from what in was. A long input becomes a
// segment, if there is a store.
func (b *blobs) difference(ctx context.Context, in conversation, was extent, s *agentloop.State) (stepOutput, error) {
	same := 0
	for same < len(was.messages) && same < len(s.Messages) && reflect.DeepEqual(was.messages[same], s.Messages[same]) {
		same++
	}
	var out stepOutput
	since := was
	switch {
	case same < in.Before.Messages: // a message in the store has changed
		out.Before, since, same = &before{}, extent{}, 0
	case b.store != nil && same == len(was.messages) && same < len(s.Messages) && len(in.State) > b.limit:
		key, err := b.putSegment(ctx, segment{Prev: in.Before.Key, State: in.State})
		if err != nil {
			return out, err
		}
		out.Before = &before{Key: key, Messages: same, Steps: was.steps, Results: was.results}
	default:
		out.Keep = same - in.Before.Messages
	}
	more := *s
	more.Messages, more.Steps, more.Results = s.Messages[same:], s.Steps[since.steps:], s.Results[since.results:]
	var err error
	out.State, err = b.packJSON(ctx, more)
	return out, err
}

// replica is the State in the workflow, which holds only the end of the
// conversation. Its Steps are complete, because their number is part of each
// idempotency key, but empty where they are in the blob store.
type replica struct {
	before before
	*agentloop.State
	encoder agentloop.Encoder // of conversation
}

func newReplica(c conversation) (*replica, error) {
	r := &replica{before: c.Before, State: new(agentloop.State)}
	if err := json.Unmarshal(c.State, r.State); err != nil {
		return nil, err
	}
	r.Steps = append(make([]agentloop.StepRecord, c.Before.Steps), r.Steps...)
	return r, nil
}

// conversation returns the stored form.
func (r *replica) conversation() (conversation, error) {
	s := *r.State
	s.Steps = s.Steps[r.before.Steps:]
	doc, err := r.encoder.Encode(&s)
	return conversation{r.before, doc}, err
}

// apply takes the changes that an activity made.
func (r *replica) apply(out stepOutput) error {
	if out.State == nil {
		return nil
	}
	var next agentloop.State
	if err := json.Unmarshal(out.State, &next); err != nil {
		return err
	}
	if out.Before != nil {
		r.before = *out.Before
		next.Steps = append(make([]agentloop.StepRecord, r.before.Steps), next.Steps...)
	} else {
		next.Messages = append(slices.Clip(r.Messages[:out.Keep]), next.Messages...)
		next.Steps = append(r.Steps, next.Steps...)
		next.Results = append(r.Results, next.Results...)
	}
	*r.State = next
	return nil
}
