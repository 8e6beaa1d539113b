package codec

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Input is the body of a request, for a reader. Without Known the reader reads all of it.
type Input struct {
	Raw    string
	Known  *Known
	Client string // the client that sent the body: its messages are known for no other one
	// Defer defers reading the messages, in formats that name their list in Borrow. The
	// request may share its tools with other requests.
	Defer bool

	// Borrow sets these.
	Deferred          bool // the reader checks the messages that are not known, and drops them
	Stream, HasStream bool // the member "stream", and whether the body has it

	// Calls has how many calls each of the messages that are not known has. A reader that sets it before Keep
	// makes the calls of the conversation known too.
	Calls []int

	calls   int // of all messages
	dialect string
	lists   []*knownList
}

// Borrow is codec.Borrow for the body. messages is the key of the list of messages; with "" all
// of the body is read. Of the lists of tools and of deferred messages, use gets only the
// elements that are not known.
func (in *Input) Borrow(dialect, messages string, use func(object rawjson.Value) error) (err error) {
	in.dialect, in.Deferred = dialect, in.Defer && messages != ""
	var known func(key string, at, depth int) int
	if in.Known != nil && messages != "" && len(in.Raw) <= maxKnown {
		known = func(key string, at, depth int) int {
			isTools := isToolList(key, depth)
			if len(in.lists) == maxLists || !isTools && !(in.Deferred && depth == 2 && key == `"`+messages+`"`) {
				return 0
			}
			l := in.find(isTools, at)
			in.lists = append(in.lists, l)
			return l.end
		}
	}
	e := rawjson.BorrowKnown(in.Raw, limits, known, func(doc *rawjson.Doc) {
		if err = asObject(doc, use); err == nil {
			in.Stream, in.HasStream = streamIn(doc.Root())
		}
	})
	if e != nil {
		return fmt.Errorf("%w: %w", ErrShape, e)
	}
	return err
}

// isToolList reports whether an array is a list of tools, by its key and depth. Gemini's lists are in elements of one.
func isToolList(key string, depth int) bool {
	return depth == 2 && key == `"tools"` || depth == 4 && (key == `"functionDeclarations"` || key == `"function_declarations"`)
}

// find returns what is known of the list at an offset of the body. Of messages, each mark has the sum
// of all before it, so the last one that is known is looked for in steps that double, and then by halves.
func (in *Input) find(isTools bool, at int) *knownList {
	k, text, kind := in.Known, in.Raw[at:], in.dialect+" tools"
	if !isTools {
		kind = in.dialect + " messages " + in.Client
	}
	k.once.Do(func() { k.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()} })
	l := &knownList{at: at, sum: sum{maphash.String(k.seeds[0], kind), maphash.String(k.seeds[1], kind)}}
	if !isTools {
		sums, unknown := []sum{l.sum}, len(text)/markEach+1
		for n := 1; l.marks+1 < unknown; n = min(2*l.marks, (l.marks+unknown)/2) {
			for len(sums) <= n {
				sums = append(sums, k.next(sums[len(sums)-1], text, len(sums)-1, false))
			}
			if m, ok := k.get(sums[n]); ok {
				l.sum, l.marks, l.end, l.calls = sums[n], n, m.end, m.calls
			} else {
				unknown = n
			}
		}
		return l
	}
	for len(text) >= (l.marks+1)*markEach {
		next := k.next(l.sum, text, l.marks, true)
		m, ok := k.get(next)
		if !ok || m.seen || text[l.end:m.end] != m.text {
			l.again = ok
			break
		}
		l.sum, l.marks, l.end, l.tools = next, l.marks+1, m.end, append(l.tools, m.tools...)
	}
	return l
}

// list returns the list that v is, or nil.
func (in *Input) list(v rawjson.Value) *knownList {
	start, _ := v.Span()
	for _, l := range in.lists {
		if l.at == start && v.Kind() == rawjson.Array {
			return l
		}
	}
	return nil
}

// Tools returns the known tools at the beginning of a list. Nothing in them may be modified. in may be nil.
func (in *Input) Tools(list rawjson.Value) []middleware.Tool {
	if in == nil {
		return nil
	}
	if l := in.list(list); l != nil {
		return l.tools
	}
	return nil
}

// Keep makes the elements of a list known, up to the first one for which stop returns true. nil
// means that all of them may be left out. The caller has read the whole body without an error.
// read reads a tool, and is nil for messages.
func (in *Input) Keep(v rawjson.Value, stop func(rawjson.Value) bool, read func(rawjson.Value) (middleware.Tool, error)) {
	l := in.list(v)
	if read == nil {
		for _, n := range in.Calls {
			in.calls += n
		}
		if l != nil {
			in.calls += l.calls
		}
	}
	if l == nil {
		return
	}
	start, end := v.Span()
	text, before, m := in.Raw[start:end], l.end, mark{end: l.end, calls: l.calls, seen: read != nil && !l.again}
	if l.end > 0 {
		in.Known.hits.Add(1)
	} else if len(text) >= markEach {
		in.Known.misses.Add(1)
	}
	put := func(to int) {
		for to >= (l.marks+1)*markEach {
			l.sum = in.Known.next(l.sum, text, l.marks, read != nil)
			if read != nil && !m.seen {
				m.text = strings.Clone(text[before:m.end])
			}
			in.Known.put(l.sum, m)
			l.marks, before, m.tools = l.marks+1, m.end, nil
		}
	}
	calls := in.Calls
	for e := range v.Each() {
		if stop != nil && stop(e) {
			return
		}
		_, to := e.Span()
		put(to - start) // not behind e: if it is a number that ends at the mark, more digits may follow
		if m.end = to - start; read != nil && !m.seen {
			doc, _ := Parse(strings.Clone(e.Raw())) // so that the body is not kept
			t, err := read(doc.Root())
			if err != nil {
				return
			}
			m.tools = append(m.tools, t)
		} else if read == nil && len(calls) > 0 {
			m.calls, calls = m.calls+calls[0], calls[1:]
		}
	}
	put(end - start)
}

// Known is what the lists of earlier requests began with. Agents send the same tools, and the
// same messages and a turn more, in each request. Each kilobyte of a list has a mark, with the sum of all the text
// of the list up to it. So a list is known up to the kilobyte in which it differs from earlier ones. The text of messages is not
// kept: if two texts had the same sums of 128 bits, under a random key, the second one would not be checked. The text of
// tools is kept, and compared.
//
// Known is bounded, and safe for concurrent use. The zero Known is empty.
type Known struct {
	once         sync.Once
	seeds        [2]maphash.Seed
	shards       [16]shard
	hits, misses atomic.Int64
}

const (
	markEach = 1 << 10
	maxKnown = 2 * maxValues // bytes of a body that is looked up; it has no more than maxValues values
	maxLists = 4             // of a body that are looked up
	maxShard = 512 << 10     // bytes, about, of each of the maps of a shard
)

// sum is the sum of the text of a list up to a mark.
type sum [2]uint64

// mark is what is known of a list at a mark.
type mark struct {
	end   int               // of the last element that ends before the mark
	calls int               // of the messages up to there
	seen  bool              // the tools are kept when they come again
	text  string            // of the tools between the mark before and this one
	tools []middleware.Tool // the same
}

// knownList is a list of a body, of which the text up to end is known.
type knownList struct {
	at, end int
	calls   int // in it
	tools   []middleware.Tool
	sum     sum  // at the last mark that was found
	marks   int  // that were found
	again   bool // the next tools have come before
}

// shard has some of the marks. If young is full, it becomes old, and the marks that were not used since then are forgotten.
type shard struct {
	mu         sync.Mutex
	young, old map[sum]mark
	size       int // of young
}

// get returns the mark with a sum.
func (k *Known) get(s sum) (mark, bool) {
	sh := k.lock(s)
	defer sh.mu.Unlock()
	m, ok := sh.young[s]
	if !ok {
		if m, ok = sh.old[s]; ok {
			sh.put(s, m)
		}
	}
	return m, ok
}

// put sets the mark with a sum.
func (k *Known) put(s sum, m mark) {
	sh := k.lock(s)
	defer sh.mu.Unlock()
	sh.put(s, m)
}

// lock returns the locked shard of a sum.
func (k *Known) lock(s sum) *shard {
	sh := &k.shards[s[0]%uint64(len(k.shards))]
	sh.mu.Lock()
	return sh
}

func (sh *shard) put(s sum, m mark) {
	size := 128 + 3*len(m.text) + 512*len(m.tools) // the text, and its copies in the tools
	if size > maxShard {
		return
	}
	if sh.size += size; sh.young == nil || sh.size > maxShard {
		sh.young, sh.old, sh.size = map[sum]mark{}, sh.young, size
	}
	sh.young[s] = m
}

// next returns the sum of the text at mark n+1. before is the sum at mark n. Of tools, whose text is
// compared, half of a sum is enough.
func (k *Known) next(before sum, text string, n int, isTools bool) sum {
	text = text[n*markEach : (n+1)*markEach]
	for i, seed := range k.seeds {
		if i > 0 && isTools {
			break
		}
		before[i] = before[i]*0x9e3779b97f4a7c15 + maphash.String(seed, text)
	}
	return before
}

// Counts returns how many lists were known at least in part, how many were not, and the number
// of marks. Lists that are shorter than a kilobyte are not counted.
func (k *Known) Counts() (hits, misses int64, marks int) {
	for i := range k.shards {
		sh := k.lock(sum{uint64(i)})
		marks += len(sh.young) + len(sh.old)
		sh.mu.Unlock()
	}
	return k.hits.Load(), k.misses.Load(), marks
}
