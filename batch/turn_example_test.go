package batch_test

import (
	"fmt"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// turn has two calls. A required argument of the second one is missing.
var (
	search = middleware.ToolCall{ID: "1", Name: "search", Arguments: `{"q": "fjords"}`}
	book   = middleware.ToolCall{ID: "2", Name: "book", Arguments: `{"seat": "12A"}`}
	turn   = []middleware.Verdict{
		{Call: search},
		{Call: book, Issues: []middleware.Issue{{Code: "required", Pointer: "/flight", Message: "required property is missing"}}},
	}
)

// The messages of a re-ask for a message whose second call was cut off.
func ExampleTurn() {
	m := middleware.Assistant("", search, middleware.ToolCall{ID: "2", Name: "book it!", Arguments: `{"seat": `})
	render := func(middleware.Verdict) string { return "what was wrong" }
	for _, m := range batch.Turn(m, []middleware.Tool{{Name: "search"}}, turn, batch.ReissueAll, render) {
		fmt.Printf("%s %q\n", m.Role, m.ToolName)
		for _, c := range m.ToolCalls {
			fmt.Println("  calls", c.Name, c.Arguments)
		}
	}
	// Output:
	// assistant ""
	//   calls search {"q": "fjords"}
	//   calls book_it_ {}
	// tool "search"
	// tool "book_it_"
}

func ExampleReplies() {
	render := func(v middleware.Verdict) string { return v.Issues[0].Path() + ": " + v.Issues[0].Message }
	for _, m := range batch.Replies(turn, batch.KeepValid, render) {
		fmt.Println(m.ToolCallID, m.IsError, m.Text())
	}
	// Output:
	// 1 false This call is valid and was not executed yet: it is held until the failed calls of the same batch are corrected. Send only the failed calls again, not this one.
	// 2 true flight: required property is missing
}

func ExampleValid() {
	for _, c := range batch.Valid(turn) {
		fmt.Println(c.Name, c.Arguments)
	}
	// Output: search {"q": "fjords"}
}

// The model sends the invalid call again, as KeepValid asks for.
func ExampleSplice() {
	kept := middleware.Assistant("", search, book)
	fixed := middleware.Assistant("", middleware.ToolCall{ID: "7", Name: "book", Arguments: `{"seat": "12A", "flight": "SK4"}`})
	spliced, at, ok := batch.Splice(kept, fixed, turn)
	fmt.Println(ok, at)
	for _, c := range spliced.ToolCalls {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	// Output:
	// true [1]
	// 1 search {"q": "fjords"}
	// 2 book {"seat": "12A", "flight": "SK4"}
}

// The model sends only one of the two calls again, although ReissueAll asks for both.
func ExampleLost() {
	next := middleware.Assistant("", middleware.ToolCall{Name: "book", Arguments: `{"seat": "12A", "flight": "SK4"}`})
	for _, c := range batch.Lost(turn, next) {
		fmt.Println(c.Name)
	}
	// Output: search
}
