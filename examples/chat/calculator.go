package main

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/toolmend/toolmend/agentloop"
)

type calculatorArgs struct {
	// The schema holds the limit: longer ones are refused before a line of ours runs.
	Expression string `json:"expression" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"such as (54 - 32) * 5 / 9 or sqrt(2) ^ 3"`
}

func calculator() agentloop.Tool {
	return agentloop.NewTool("calculator", "Works out an arithmetic expression.",
		func(_ context.Context, args calculatorArgs) (agentloop.Result, error) {
			v, err := calculate(args.Expression)
			if err != nil {
				return agentloop.Result{}, err
			}
			return agentloop.Text(strconv.FormatFloat(v, 'g', 15, 64)), nil
		})
}

// calculate works out what a stranger wrote: numbers, operators and sqrt, and
// nothing that could take long.
func calculate(expression string) (float64, error) {
	only := new(arithmetic)
	program, err := expr.Compile(expression,
		expr.AsFloat64(), // and not a string or a list
		expr.DisableAllBuiltins(),
		expr.Function("sqrt", func(params ...any) (any, error) { return math.Sqrt(params[0].(float64)), nil }, math.Sqrt),
		expr.MaxNodes(100),
		expr.Patch(only),
	)
	if err = errors.Join(err, only.err); err != nil {
		return 0, err
	}
	result, err := expr.Run(program, nil)
	if err != nil {
		return 0, err
	}
	v, ok := result.(float64)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("the result is not a number: is there a division by zero, or the root of a negative number?")
	}
	return v, nil
}

// arithmetic makes every number a float64: integers would wrap silently where
// they get too big. What is more than arithmetic is an error: a few nested sums
// over a list, which no option turns off, run for minutes.
type arithmetic struct{ err error }

// Visit is called for every node of the expression.
func (a *arithmetic) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.FloatNode, *ast.UnaryNode, *ast.BinaryNode, *ast.CallNode, *ast.IdentifierNode:
	default:
		a.err = errors.New("only numbers, operators, parentheses and sqrt are known here")
	}
}
