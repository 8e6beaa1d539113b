package main

import (
	"context"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// model plays one that asks for three payments and reports what became of them.
func model(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	var became []string
	for _, m := range req.Messages {
		if m.Role == middleware.RoleTool {
			became = append(became, m.Text())
		}
	}
	if len(became) > 0 {
		return &middleware.Response{Message: middleware.Assistant("Done: " + strings.Join(became, "; ")), FinishReason: middleware.FinishStop}, nil
	}
	return &middleware.Response{Message: middleware.Assistant("",
		middleware.ToolCall{ID: "call_1", Name: "pay", Arguments: `{"to":"landlord","euros":900}`},
		middleware.ToolCall{ID: "call_2", Name: "pay", Arguments: `{"to":"power company","euros":800}`},
		middleware.ToolCall{ID: "call_3", Name: "pay", Arguments: `{"to":"phone company","euros":30}`},
	), FinishReason: middleware.FinishToolCalls}, nil
}
