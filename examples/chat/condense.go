package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

const rewrite = `Rewrite the follow-up of this conversation as a question that stands alone. Write that question only.

Chat History:
%s
Follow Up Input: %s
Standalone question:`

// condense turns a follow-up into a question that needs no history: that is what
// is answered, and what the history holds.
func condense(ctx context.Context, call middleware.ModelCall, history []string, question string) (string, error) {
	if len(history) == 0 {
		return question, nil
	}
	resp, err := call(ctx, &middleware.Request{Messages: []middleware.Message{
		middleware.User(fmt.Sprintf(rewrite, strings.Join(history, ""), question)),
	}})
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(resp.Message.Text()), question), nil
}
