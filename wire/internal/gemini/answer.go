package gemini

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read, which the Native of a response remembers. It
// is written as one object, whatever its framing was:
//
//	{"candidates": [{"content": {"role": "model", "parts": [part, …]}, "finishReason": "STOP", "index": 0}],
//	 "usageMetadata": {"promptTokenCount": 10, …}, "modelVersion": "gemini-x", "responseId": "r-1"}
type answer struct {
	codec.Answered
	candidates []*candidate  // in order of their index
	extra      codec.Members // unknown members; the following ones are JSON, "" for none:
	usage      string        // the last usageMetadata with figures
	model      string        // the last modelVersion
	id         string        // the first responseId
}

// candidate is one candidate through all chunks.
type candidate struct {
	index    int64
	contents int // how many chunks have one
	// parts are the parts of all chunks; a call that came in pieces is one part. The empty text
	// with which Gemini ends a stream is left out: if a chunk has it and a call, Gemini CLI 0.61
	// runs the call, but keeps nothing in its history.
	parts   []string
	finish  string // the last finishReason, as JSON
	word    string // of finish; "" for none
	message string // the last finishMessage
	extra   codec.Members
	joined  *partialCall // a call that goes on; nil: none does
}

// object returns the answer as one object.
func (a *answer) object() string {
	candidates := make([]string, len(a.candidates))
	for i, c := range a.candidates {
		content := lens.None("content")
		if c.contents > 0 {
			content.Raw = freshContent("model", c.parts)
		}
		candidates[i] = codec.Object(append([]lens.Member{content, lens.Raw("finishReason", c.finish), lens.Raw("index", codec.Count(c.index))}, c.extra.List...)...)
	}
	members := append([]lens.Member{lens.List("candidates", candidates)}, a.extra.List...)
	return codec.Object(append(members, lens.Raw("usageMetadata", a.usage), lens.Raw("modelVersion", a.model), lens.Raw("responseId", a.id))...)
}

// pieces reads the parts of the candidate.
func (c *candidate) pieces() ([]*piece, error) {
	return lens.Convert(c.parts, func(text string) (*piece, error) {
		v, err := codec.ParseObject(text)
		if err != nil {
			return nil, err
		}
		return readPart(v, true)
	})
}

// Whole writes resp as one object.
func (a *answer) Whole(resp *middleware.Response) (string, error) {
	now, err := a.with(resp)
	if err != nil {
		return "", err
	}
	return now.object(), nil
}

// framed returns an object as a stream of that form, whose events have the line ends of like: a
// client may look for one kind only.
func framed(object string, form codec.Form, like string) string {
	switch {
	case form == codec.FormArray:
		return "[" + object + "]"
	case strings.Contains(like, "\r\n"):
		return "data: " + codec.OneLine(object) + "\r\n\r\n"
	}
	return "data: " + codec.OneLine(object) + "\n\n"
}

// with returns the answer with what resp has. Parts that did not change keep their text.
func (a *answer) with(resp *middleware.Response) (*answer, error) {
	now := *a
	now.candidates = slices.Clone(a.candidates)
	was, messages := append([]middleware.Message{a.Is.Message}, a.Is.Choices...), append([]middleware.Message{resp.Message}, resp.Choices...)
	if len(messages) != len(was) {
		return nil, codec.Unencodablef("more or fewer choices than the answer has: keep as many in Response.Choices")
	}
	for i, m := range messages {
		switch {
		case i < len(now.candidates):
			c := *now.candidates[i]
			if now.candidates[i] = &c; codec.SameMessage(m, was[i]) {
				continue
			}
			if err := c.write(m); err != nil {
				return nil, err
			}
		case !codec.SameMessage(m, was[i]):
			return nil, codec.Unencodablef("a message in an answer whose prompt was blocked: keep it empty")
		}
	}
	if err := now.finish(resp, a); err != nil {
		return nil, err
	}
	if resp.Model != a.Is.Model {
		now.model = lens.Word("", resp.Model).Raw
	}
	return &now, now.count(resp.Usage)
}

// write gives the candidate the parts and calls of m. Reasoning of another provider is a
// thought without a signature.
func (c *candidate) write(m middleware.Message) error {
	if err := codec.AnswerOnly(m); err != nil {
		return err
	}
	pieces, err := c.pieces()
	if err == nil {
		c.parts, err = modelTexts(m, pieces, true)
		c.contents = max(c.contents, 1)
	}
	return err
}

// finish writes the finish reason where it was changed, and where it speaks of a refused
// call that is no longer there as it was.
func (a *answer) finish(resp *middleware.Response, before *answer) error {
	word, was, replaced := cmp.Or(words[resp.FinishReason], string(resp.FinishReason)), "", false
	if len(a.candidates) > 0 {
		was = a.candidates[0].word
		replaced = codec.IsUnread(was) && resp.FinishReason == middleware.FinishToolCalls && !slices.Equal(a.candidates[0].parts, before.candidates[0].parts)
	}
	switch {
	case !replaced && (resp.FinishReason == a.Is.FinishReason || word == was):
		return nil
	case was == "":
		return codec.Unencodablef("a finish reason in an answer whose prompt was blocked: keep the one that was read")
	}
	c := a.candidates[0]
	if c.finish[0] == '"' {
		c.finish = rawjson.Quote(word)
		return nil
	}
	for number, w := range finishWords { // a client that asks for numbers may fail at a name
		if w == word {
			c.finish = number
			return nil
		}
	}
	return codec.Unencodablef("a finish reason without a number, in an answer that has numbers: keep the one that was read")
}

// count writes the figures. A body without figures gets none.
func (a *answer) count(u middleware.Usage) error {
	switch {
	case u == a.Is.Usage || a.usage == "":
		return nil
	case u.CacheWrite != 0 || u.Reasoning > u.OutputTokens || u.InputTokens < 0 || u.OutputTokens < 0:
		return codec.Unencodablef("figures without a place: CacheWrite has to be 0, Reasoning at most Output, and none below 0")
	}
	v, err := codec.ParseObject(a.usage)
	if err == nil {
		a.usage, err = on.Set(v, usageMembers(v, u)...)
	}
	return err
}

// EncodeAnswer writes an answer that the provider did not send to this request. A stream is
// one chunk: without alt=sse an array of it.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	w := codec.Writing{Streamed: codec.FormArray, Objects: true, Whole: writeWhole}
	_, query, _ := strings.Cut(path, "?")
	if v, err := url.ParseQuery(query); err == nil && (v.Get("alt") == "sse" || v.Get("$alt") == "sse") {
		w.Streamed = codec.FormEvents
	}
	w.Unfold = func(whole string) (string, error) { return framed(whole, w.Streamed, "\r\n"), nil }
	return codec.EncodeAnswer(f, path, body, resp, w)
}

// writeWhole writes a response as one object: with its members on the wire, or as a change of
// an answer without parts. A response has one finish reason: the reason of a further choice
// follows its calls.
func writeWhole(resp *middleware.Response) (string, error) {
	if on.Raw(resp.Native) != "" {
		a, err := codec.Reread[*answer](Format{}, resp.Native)
		if err != nil {
			return "", err
		}
		return a.Whole(resp)
	}
	fresh := *resp
	fresh.FinishReason, fresh.Usage = codec.FinishOf(resp), codec.FiguresOf(resp)
	fresh.Usage.CacheWrite = 0
	a := &answer{usage: `{"promptTokenCount":0,"candidatesTokenCount":0,"totalTokenCount":0}`, id: rawjson.Quote(codec.NewID(""))}
	a.Is = middleware.Response{Message: middleware.Message{Role: middleware.RoleAssistant}, FinishReason: middleware.FinishStop, Choices: make([]middleware.Message, len(resp.Choices))}
	for i := range 1 + len(resp.Choices) {
		a.candidates = append(a.candidates, &candidate{index: int64(i), contents: 1, finish: rawjson.Quote(stopWord), word: stopWord})
	}
	return a.Whole(&fresh)
}

// Stream writes the part of resp that the client does not have as one chunk, under the
// responseId that it has: chunks are independent of each other. So is a later answer.
func (a *answer) Stream(resp *middleware.Response, client *codec.Client) (string, error) {
	has := client.Has.(*stream)
	now, err := a.with(resp)
	switch {
	case err != nil:
		return "", err
	case has.Text() == "":
		return framed(now.object(), a.Form, a.Text), nil
	}
	now.id = cmp.Or(has.a.id, now.id)
	for _, c := range now.candidates {
		if c.parts, err = missingParts(c, has.snapshot[c.index], client.Own); err != nil {
			return "", err
		}
	}
	return string(has.Buf.Frame(has.Safe(), "", now.object())), nil
}

// missingParts returns the parts of c that the client does not have. shown are the shown parts
// of the same answer, if own, else of an earlier one: then the reasoning of c is left out if
// the client has some. A middleware may have joined texts.
func missingParts(c *candidate, shown []string, own bool) ([]string, error) {
	if len(shown) == 0 {
		return c.parts, nil
	}
	pieces, err := c.pieces()
	if err != nil {
		return nil, err
	}
	if !own {
		return texts(slices.DeleteFunc(pieces, func(p *piece) bool { return p.part.Kind == middleware.PartReasoning })), nil
	}
	for len(pieces) > 0 && len(shown) > 0 && pieces[0].v.Raw() == shown[0] {
		pieces, shown = pieces[1:], shown[1:]
	}
	before, err := (&candidate{parts: shown}).pieces()
	if err != nil {
		return nil, err
	}
	sentText := map[middleware.PartKind]string{}
	for _, p := range before {
		if p.part.Kind != middleware.PartText && p.part.Kind != middleware.PartReasoning {
			return nil, codec.ErrShown
		}
		sentText[p.part.Kind] += p.part.Text
	}
	var out []string
	for _, p := range pieces {
		has := sentText[p.part.Kind]
		n := min(len(has), len(p.part.Text))
		if has[:n] != p.part.Text[:n] {
			return nil, codec.ErrShown
		}
		text := p.v.Raw()
		switch sentText[p.part.Kind] = has[n:]; {
		case n > 0 && n == len(p.part.Text):
			continue
		case n > 0:
			if text, err = on.Set(p.v, lens.Text("text", p.part.Text[n:])); err != nil {
				return nil, err
			}
		}
		out = append(out, text)
	}
	if sentText[middleware.PartText]+sentText[middleware.PartReasoning] != "" {
		return nil, codec.ErrShown
	}
	return out, nil
}

// The words of the wire that this package writes, and the first numbers, which
// all of the provider's services agree on: a client may ask for enums as
// numbers.
const (
	stopWord   = "STOP"
	lengthWord = "MAX_TOKENS"
	filterWord = "SAFETY"
)

var finishWords = map[string]string{"1": stopWord, "2": lengthWord, "3": filterWord, "4": "RECITATION", "5": "OTHER"}

// words are the wire's words for the neutral ones.
var words = map[middleware.FinishReason]string{middleware.FinishStop: stopWord, middleware.FinishToolCalls: stopWord,
	middleware.FinishLength: lengthWord, middleware.FinishFilter: filterWord}

// malformed is the reason for a call that the server could not read.
const malformed = "MALFORMED_FUNCTION_CALL"

// finishWord returns the word of a finishReason, "" for none. A number that
// the services do not agree on stays one, unless message tells.
func finishWord(v rawjson.Value, message string) string {
	switch v.Kind() {
	case rawjson.Number:
	case rawjson.String:
		if v.Str() == "FINISH_REASON_UNSPECIFIED" {
			return ""
		}
		return v.Str()
	default: // "", and a reason that no service sends
		return codec.Canonical(v)
	}
	switch word := finishWords[v.Raw()]; {
	case word != "" || v.Raw() == "0":
		return word
	case strings.HasPrefix(message, "Malformed function call"):
		return malformed
	}
	return v.Raw()
}

// The figures of usageMetadata. Prompt and tool results make the input,
// candidates and thoughts the output:
//
//	{"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 16}
//
// The count of the candidates does not contain the thoughts, unlike the output counts of the
// other formats. Tokens written to a cache have no figure.
const (
	promptKey  = "promptTokenCount"
	toolKey    = "toolUsePromptTokenCount"
	cachedKey  = "cachedContentTokenCount"
	answerKey  = "candidatesTokenCount"
	thoughtKey = "thoughtsTokenCount"
	totalKey   = "totalTokenCount"
)

// usageOf reads the figures. A negative count is 0.
func usageOf(v rawjson.Value) middleware.Usage {
	count := func(key string) int64 { return max(0, codec.Int(on.Get(v, key))) }
	sum := middleware.Usage{InputTokens: count(promptKey), OutputTokens: count(answerKey)}.
		Add(middleware.Usage{InputTokens: count(toolKey), OutputTokens: count(thoughtKey)})
	sum.Cached, sum.Reasoning = count(cachedKey), count(thoughtKey)
	return sum
}

// usageMembers projects figures onto usageMetadata, which is v now: of the input,
// what v has for tool results stays theirs. A figure of 0 is not added where v does
// not have it: the server leaves those out.
func usageMembers(v rawjson.Value, u middleware.Usage) []lens.Member {
	tool := codec.Int(on.Get(v, toolKey))
	if tool > u.InputTokens {
		tool = 0
	}
	var out []lens.Member
	put := func(key string, n int64) {
		if n != 0 || on.Get(v, key).Exists() {
			out = append(out, lens.Raw(key, codec.Count(n)))
		}
	}
	put(promptKey, u.InputTokens-tool)
	put(toolKey, tool)
	put(cachedKey, u.Cached)
	put(answerKey, u.OutputTokens-u.Reasoning)
	put(thoughtKey, u.Reasoning)
	if on.Get(v, totalKey).Exists() {
		put(totalKey, u.InputTokens+u.OutputTokens)
	}
	return out
}
