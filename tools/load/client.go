package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client is one user with connections of its own, one for each target. It is not
// safe for concurrent use.
type client struct {
	http *http.Client
	buf  []byte
}

func newClient() *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{DisableCompression: true}},
		buf:  make([]byte, len(streamAnswer.body)+len(wholeAnswer)),
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// whole sends request n to the server at address and returns the time until the
// end of the answer. An answer that is not that of the mock is an error.
func (c *client) whole(ctx context.Context, address string, n int) (time.Duration, error) {
	want := numbered(wholeAnswer, n)
	body := numbered(wholeRequest, n)
	began := time.Now()
	resp, err := c.post(ctx, address, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := c.read(resp.Body, 0, len(c.buf))
	took := time.Since(began)
	if !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("request %d: %w", n, err)
	}
	return took, compare(n, got, want)
}

// stream sends request n and returns the time until the first text. read, if it
// is not nil, is called then.
func (c *client) stream(ctx context.Context, address string, n int, read func()) (time.Duration, error) {
	want := numbered(streamAnswer.body, n)
	body := numbered(streamRequest, n)
	began := time.Now()
	resp, err := c.post(ctx, address, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := c.read(resp.Body, 0, streamAnswer.firstText)
	took := time.Since(began)
	if read != nil {
		read()
	}
	if err == nil {
		got, err = c.read(resp.Body, len(got), len(c.buf))
	}
	if !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("stream %d: %w", n, err)
	}
	return took, compare(n, got, want)
}

// post sends a model call, and fails unless the answer has the status 200.
func (c *client) post(ctx context.Context, address string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+chatPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer load")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("status %s: %s", resp.Status, text)
	}
	return resp, nil
}

// read fills the buffer from its byte n on until it holds enough bytes, and
// returns all of it. The error is nil if they are there.
func (c *client) read(r io.Reader, n, enough int) ([]byte, error) {
	for n < enough {
		m, err := r.Read(c.buf[n:])
		n += m
		if err != nil {
			return c.buf[:n], err
		}
	}
	return c.buf[:n], nil
}

// compare fails unless an answer is, byte for byte, what the mock sent.
func compare(n int, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	excerpt := func(b []byte) []byte { return b[at:min(len(b), at+60)] }
	return fmt.Errorf("the answer to request %d differs from what the mock sent, from byte %d on: got %q (%d bytes in all), sent %q (%d)",
		n, at, excerpt(got), len(got), excerpt(want), len(want))
}
