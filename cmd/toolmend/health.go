package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"
)

//go:embed help/health.txt
var healthHelp string

// healthTimeout limits the probe. It is shorter than the usual limit of those
// who run it.
const healthTimeout = 3 * time.Second

// runHealth is `toolmend health`.
func runHealth(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := newFlags("health")
	to := fs.String("url", "http://"+defaultListen, "")
	ready := fs.Bool("ready", false, "")
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	base, urlErr := gatewayURL(*to)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, healthHelp)
		return exitOK
	case err == nil:
		err = urlErr
	}
	if err != nil {
		fmt.Fprintf(stderr, "toolmend health: %v\nSee toolmend health -h.\n", err)
		return exitFailed
	}
	page := "/_toolmend/healthz"
	if *ready {
		page = "/_toolmend/readyz"
	}
	if err := probe(ctx, base+page); err != nil {
		fmt.Fprintf(stderr, "toolmend health: %v\n", err)
		return exitInvalid
	}
	fmt.Fprintln(stdout, "ok")
	return exitOK
}

// probe returns nil if the page has status 200. It uses no proxy.
func probe(ctx context.Context, page string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no gateway answers at %s: %w", page, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s has status %d", page, resp.StatusCode)
	}
	return nil
}
