package serve

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

//go:embed help/health.txt
var healthHelp string

// healthTimeout limits the probe. It is shorter than the usual limit of those
// who run it.
const healthTimeout = 3 * time.Second

// alivePage is the page that says that a gateway is alive.
const alivePage = "/_toolmend/healthz"

// Health is `toolmend health`.
func Health(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	to, file, base := "http://"+defaultListen, "", ""
	fs := cli.NewFlags("health", map[string]*string{"url": &to, "config": &file})
	ready := fs.Bool("ready", false, "")
	err := cli.ParseFlags(fs, args)
	switch {
	case err != nil:
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case file != "":
		base, err = urlOf(file)
	default:
		base, err = gatewayURL(to)
	}
	if err != nil {
		return cli.Usage(err, "health", healthHelp, stdout, stderr)
	}
	page := alivePage
	if *ready {
		page = "/_toolmend/readyz"
	}
	if err := probe(ctx, base+page); err != nil {
		fmt.Fprintf(stderr, "toolmend health: %v\n", err)
		return cli.ExitInvalid
	}
	fmt.Fprintln(stdout, "ok")
	return cli.ExitOK
}

// urlOf returns the address of the gateway of a configuration file.
func urlOf(file string) (string, error) {
	c, _, err := readConfig(file)
	if err != nil {
		return "", err
	}
	c.setDefaults()
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", fmt.Errorf("%s: listen: %w", file, err)
	}
	return baseURL(c, host, port), nil
}

// probe returns nil if the page is one of a gateway and says ok. It uses no proxy. It asks its
// own machine, so it accepts a certificate for another name.
func probe(ctx context.Context, page string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no gateway answers at %s: %w; start it with toolmend serve, or name its address with --url", page, err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 16))
	switch ok := resp.StatusCode == http.StatusOK; {
	case ok && string(text) == "ok\n":
		return nil
	case ok || resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("another program than a Toolmend gateway answers at %s (status %d)", page, resp.StatusCode)
	}
	return fmt.Errorf("%s has status %d", page, resp.StatusCode)
}
