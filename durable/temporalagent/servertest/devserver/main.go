// Devserver runs a Temporal server in one process, for tests and for trying
// things on a laptop. It keeps its data in memory, or in a SQLite file with
// -db. It listens on the loopback interface only and has no authentication.
//
// Its first line of output is the address for clients:
//
//	listening on 127.0.0.1:7233
//
// It ends with an interrupt or SIGTERM. With -until-eof it also ends when its
// standard input is closed, so that it does not outlive the test that started
// it. A server that was killed continues with the same -db and the same -addr.
//
// It uses only the public API of go.temporal.io/server.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "devserver:", err)
		os.Exit(1)
	}
}

func run() error {
	db := flag.String("db", "", "the SQLite `file` for the data; without it they are in memory")
	addr := flag.String("addr", "127.0.0.1:0", "the loopback `address` for clients; port 0 takes a free one")
	namespace := flag.String("namespace", "default", "the `name` of the namespace that is there from the start")
	level := flag.String("log", "fatal", "the `level` of the log on standard error: debug, info, warn, error or fatal")
	untilEOF := flag.Bool("until-eof", false, "also end when standard input is closed")
	dynamic := settings{}
	flag.Var(dynamic, "set", "a value of the server's dynamic configuration, as `key=value`; may be repeated")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}

	host, port, err := listenAddress(*addr)
	if err != nil {
		return err
	}
	options, err := serverOptions(host, port, *db, *namespace)
	if err != nil {
		return err
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: *level, Format: "console"}))
	options = append(options, temporal.WithLogger(logger), temporal.WithDynamicConfigClient(dynamicconfig.StaticClient(dynamic)))
	server, err := temporal.NewServer(options...)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	err = ready(ctx, address, *namespace)
	if err == nil {
		fmt.Println("listening on", address)
		<-ctx.Done()
	}
	if stopErr := server.Stop(); err == nil {
		err = stopErr
	}
	return err
}

// listenAddress splits addr, refuses hosts that other machines can reach, and
// replaces port 0 by a free one.
func listenAddress(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return "", 0, fmt.Errorf("-addr: %q is not a loopback address such as 127.0.0.1", host)
		}
		port, err = portOn(host, text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("-addr: %w", err)
	}
	return host, port, nil
}

// ready waits until the server answers for the namespace: it answers to a dial
// a little earlier.
func ready(ctx context.Context, address, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := probe(ctx, address, namespace)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var silent = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

func probe(ctx context.Context, address, namespace string) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: silent})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace})
	return err
}

// settings is a flag of the form key=value. Numbers and booleans become such.
type settings dynamicconfig.StaticClient

func (s settings) String() string { return "" }

func (s settings) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q has no =", text)
	}
	s[dynamicconfig.MakeKey(key)] = parsed(value)
	return nil
}

func parsed(value string) any {
	if n, err := strconv.Atoi(value); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(value); err == nil {
		return b
	}
	return value
}
