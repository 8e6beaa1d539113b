package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"
)

// client is one user with connections of its own, one for each target. It is not
// safe for concurrent use.
type client struct {
	http  *http.Client
	buf   []byte
	equal [][]byte // answers that mean what the mock sent, with the placeholder in them
}

func newClient() *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{DisableCompression: true}},
		buf:  make([]byte, len(callStream.body)+len(wholeAnswer)),
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// whole sends request n to the server at address and returns the time until the
// end of the answer. An answer that does not mean what the mock sent is an error.
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
	return took, c.compare(n, got, want)
}

// stream sends request n of s and returns the time until the first text. read, if
// it is not nil, is called then.
func (c *client) stream(ctx context.Context, address string, s stream, n int, read func()) (time.Duration, error) {
	want := numbered(s.body, n)
	body := numbered(s.request, n)
	began := time.Now()
	resp, err := c.post(ctx, address, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := c.read(resp.Body, 0, s.firstText)
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
	return took, c.compare(n, got, want)
}

// post sends a model call, and fails unless the answer has the status 200.
func (c *client) post(ctx context.Context, address string, body []byte) (*http.Response, error) {
	resp, err := c.send(ctx, address, body)
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

// send is post for an answer of any status.
func (c *client) send(ctx context.Context, address string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+chatPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer load")
	return c.http.Do(req)
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

// compare fails unless an answer means what the mock sent. Nearly all are the same
// bytes. A gateway may write the events of a call in another way; each way is read
// once.
func (c *client) compare(n int, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	template := bytes.ReplaceAll(got, digits(n), []byte(placeholder))
	if slices.ContainsFunc(c.equal, func(known []byte) bool { return bytes.Equal(known, template) }) {
		return nil
	}
	read, err := readMessage(got)
	wanted, errWant := readMessage(want)
	if err == nil && errWant == nil && reflect.DeepEqual(read, wanted) {
		c.equal = append(c.equal, template)
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

// message is what a client of the chat format gets from an answer.
type message struct {
	id, text, finish string
	calls            []chatCall
	tokens           int
}

type chatCall struct {
	ID       string
	Function struct{ Name, Arguments string }
}

// readMessage reads a whole answer, or a stream that ends with its usage and [DONE].
func readMessage(body []byte) (m message, err error) {
	units := [][]byte{body}
	if bytes.HasPrefix(body, []byte("data: ")) {
		events, done := bytes.CutSuffix(body, []byte("data: [DONE]\n\n"))
		if !done {
			return m, io.ErrUnexpectedEOF
		}
		units = bytes.Split(bytes.TrimSuffix(events, []byte("\n\n")), []byte("\n\n"))
	}
	for _, unit := range units {
		var part struct {
			ID      string
			Choices []struct {
				Message, Delta struct {
					Content   string
					ToolCalls []struct {
						Index int
						chatCall
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
			Usage struct {
				Tokens int `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal(bytes.TrimPrefix(unit, []byte("data: ")), &part); err != nil {
			return m, err
		}
		m.id, m.tokens = part.ID, m.tokens+part.Usage.Tokens
		for _, c := range part.Choices {
			m.finish += c.FinishReason
			m.text += c.Message.Content + c.Delta.Content
			for _, call := range append(c.Message.ToolCalls, c.Delta.ToolCalls...) {
				for len(m.calls) <= call.Index {
					m.calls = append(m.calls, chatCall{})
				}
				to := &m.calls[call.Index]
				to.ID += call.ID
				to.Function.Name += call.Function.Name
				to.Function.Arguments += call.Function.Arguments
			}
		}
	}
	return m, nil
}
