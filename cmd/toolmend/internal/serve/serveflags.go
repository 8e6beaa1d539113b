package serve

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/gateway"
)

//go:embed help/serve.txt
var serveHelp string

// serveFlags is the command line of serve.
type serveFlags struct {
	upstream, listen, mode, record string // "" means not given
	config                         string // path; "" means no file
	check, print                   bool
}

// parseServe reads the command line. The error is flag.ErrHelp if help was
// requested.
func parseServe(args []string) (serveFlags, error) {
	var f serveFlags
	fs := cli.NewFlags("serve", map[string]*string{
		"upstream": &f.upstream, "listen": &f.listen, "mode": &f.mode, "record": &f.record, "config": &f.config,
	})
	fs.BoolVar(&f.check, "check-config", false, "")
	fs.BoolVar(&f.print, "print-config", false, "")
	if err := cli.ParseFlags(fs, args); err != nil {
		return f, err
	}
	switch {
	case fs.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q; the provider is --upstream URL", fs.Arg(0))
	case f.upstream == "" && f.config == "":
		return f, errors.New("no upstream; say where requests go, such as --upstream https://api.anthropic.com, or name a file with --config")
	}
	return f, cmp.Or(checkUpstream(f.upstream), checkListen(f.listen))
}

// load returns the configuration of the file and the flags, valid.
func (f serveFlags) load() (config, error) {
	var c config
	var doc []byte
	if f.config != "" {
		var err error
		if c, doc, err = readConfig(f.config); err != nil {
			return c, err
		}
	}
	if err := f.apply(&c); err != nil {
		return c, err
	}
	if err := c.validate(); err != nil {
		return c, located(f.config, doc, err)
	}
	return c, nil
}

// apply puts the values of the flags into c, and the defaults of what serve
// itself needs.
func (f serveFlags) apply(c *config) error {
	if f.upstream != "" {
		if len(c.Upstreams) > 0 {
			return fmt.Errorf("--upstream %s: %s has upstreams already; leave out the flag, or the tables [[upstream]]", f.upstream, f.config)
		}
		c.Upstreams = []gateway.Upstream{{URL: strings.TrimRight(f.upstream, "/")}}
	}
	for _, v := range []struct {
		flag string
		to   *string
	}{{f.listen, &c.Listen}, {f.mode, (*string)(&c.Mode)}, {f.record, &c.Record.File}} {
		if v.flag != "" {
			*v.to = v.flag
		}
	}
	c.setDefaults()
	return nil
}

// withoutV1 returns a URL without the part of the path that clients
// send.
func withoutV1(url string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1"), "/")
}
