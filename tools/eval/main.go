// Command eval measures package mend on recorded calls whose right arguments
// are known, and writes the tables of docs/measured/mending.md.
//
//	go run -C tools ./eval -write ../docs/measured/mending.md
//
// With -live it measures the re-ask instead: a model behind llama-server
// answers re-asks of recorded calls in several forms. The table in
// docs/measured/feedback.md is what it printed.
//
//	go run -C tools ./eval -live http://127.0.0.1:8080 -cases 60
//
// With -rescue it measures package rescue: the model behind llama-server answers
// questions directly, and through the gateway without and with rescue. The tables
// in docs/measured/local-models.md are what it printed.
//
//	go run -C tools ./eval -rescue http://127.0.0.1:8080 -cases 120
//
// With -constrain it measures constrained re-asks: the model behind llama-server answers
// questions, and its own invalid calls are re-asked in four ways. The table in
// docs/measured/feedback.md is what it printed.
//
//	go run -C tools ./eval -constrain http://127.0.0.1:8080 -cases 30
//
// With -bench it measures package rescue on the cases of toolcall-repair-bench.
//
//	go run -C tools ./eval -bench DIR/corpus/cases
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

// defaultData is the directory of the recorded calls, relative to the module.
const defaultData = "../../shared/data/recorded"

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.SetOutput(out)
	data := flags.String("data", defaultData, "the `directory` with the recorded calls")
	write := flags.String("write", "", "put the tables between the markers of this `file`; else they are printed")
	wrongs := flags.Bool("wrong", false, "print every repair that the truth contradicts; with -rescue, the answers without a valid call; with -constrain, each re-ask; with -bench, the wrong cases")
	live := flags.String("live", "", "compare re-asks with the model of the llama-server at this `URL`")
	rescue := flags.String("rescue", "", "compare steps without and with package rescue with the model of the llama-server at this `URL`")
	constrain := flags.String("constrain", "", "compare constrained re-asks with the model of the llama-server at this `URL`")
	benchDir := flags.String("bench", "", "read the texts of this `directory`, the cases of toolcall-repair-bench, with package rescue")
	cases := flags.Int("cases", 60, "with -live, -rescue and -constrain: the `number` of calls of each kind, of steps, or of invalid calls")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *benchDir != "" {
		return bench(context.Background(), *benchDir, *wrongs, out)
	}
	if _, err := os.Stat(*data); err != nil {
		return err
	}
	if *live != "" || *rescue != "" || *constrain != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if *live != "" {
			return compareLive(ctx, *data, *live, *cases, out)
		}
		if *constrain != "" {
			return compareConstrain(ctx, *data, *constrain, *cases, *wrongs, out)
		}
		return compareRescue(ctx, *data, *rescue, *cases, *wrongs, out)
	}
	st, err := evaluate(*data)
	if err != nil {
		return err
	}
	if *wrongs {
		for _, w := range st.wrongs {
			fmt.Fprintln(out, w)
		}
	}
	if *write == "" {
		_, err = io.WriteString(out, st.markdown())
		return err
	}
	text, err := os.ReadFile(*write)
	if err != nil {
		return err
	}
	updated, err := between(string(text), st.markdown())
	if err != nil {
		return err
	}
	return os.WriteFile(*write, []byte(updated), 0o644)
}
