package answer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// even refuses odd numbers when it decodes: its schema allows them.
type even int

func (e *even) UnmarshalText(b []byte) error {
	if len(b) == 0 || (b[len(b)-1]-'0')%2 == 1 {
		return errOdd
	}
	*e = even(b[len(b)-1] - '0')
	return nil
}

var errOdd = &oddError{}

type oddError struct{}

func (*oddError) Error() string { return "an even number, please" }

type pair struct {
	A int  `json:"a"`
	B even `json:"b"`
}

func TestFor(t *testing.T) {
	t.Parallel()
	checked := 0
	check := func(context.Context, string) ([]middleware.Issue, error) { checked++; return nil, nil }
	model := middlewaretest.NewModel(t, middlewaretest.Text(`{"a": 1.5, "b": "2"}`), middlewaretest.Text(`{"a": 5.0, "b": "3"}`), middlewaretest.Text(`{"a": 5.0, "b": "4"}`))
	resp, err := answer.For[pair](answer.Options{Check: check})(model.Call)(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, "type", resp.Report.Attempts[0].Issues[0].Code)
	require.Equal(t, "decode", resp.Report.Attempts[1].Issues[0].Code)
	require.Contains(t, resp.Report.Attempts[1].Replies[0].Text(), "an even number, please")
	require.Equal(t, 1, checked, "it sees only answers that decode")
	v, err := answer.Value[pair](resp)
	require.NoError(t, err)
	require.Equal(t, pair{A: 5, B: 4}, v)
}

func TestForPanics(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "answer: For: Options.Schema is set, but the schema comes from the type", func() { answer.For[pair](answer.Options{Schema: wanted}) })
	require.Panics(t, func() { answer.For[int](answer.Options{}) })
	require.Panics(t, func() { answer.For[struct{ C chan int }](answer.Options{}) })
}

func TestValueOfNothing(t *testing.T) {
	t.Parallel()
	_, err := answer.Value[pair](nil)
	require.ErrorIs(t, err, answer.ErrInvalid)
	good := &middleware.Response{Message: middleware.Assistant(`{"a": 1, "b": "2"}`)}
	_, err = answer.Value[pair](good)
	require.NoError(t, err)
	good.Report.Status = middleware.Invalid // a check refused it, and it was passed on
	_, err = answer.Value[pair](good)
	require.ErrorIs(t, err, answer.ErrInvalid)
	_, err = answer.Value[pair](&middleware.Response{Message: middleware.Assistant("I would rather not say.")})
	require.EqualError(t, err, "answer: invalid answer: its text does not decode")
}
