package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
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
		buf:  make([]byte, 64<<10),
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// do sends request n of x and returns the time until the first text of a stream, or until the end
// of a whole answer. body is the request, or nil. read, if it is not nil, is called then. An answer that does not
// mean what the mock sent is an error.
func (c *client) do(ctx context.Context, address string, x *exchange, n int, body []byte, read func()) (time.Duration, error) {
	want := numbered(x.answer, n)
	if body == nil {
		body = numbered(x.request, n)
	}
	began := time.Now()
	resp, err := c.send(ctx, address, x.format.path, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return 0, fmt.Errorf("status %s: %s", resp.Status, text)
	}
	var got []byte
	if x.firstText > 0 {
		got, err = c.read(resp.Body, 0, x.firstText)
	}
	took := time.Since(began)
	if read != nil {
		read()
	}
	if err == nil {
		got, err = c.read(resp.Body, len(got), len(c.buf))
	}
	if x.firstText == 0 {
		took = time.Since(began)
	}
	if !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("request %d: %w", n, err)
	}
	return took, c.compare(n, got, want)
}

// send sends a model call, and returns the answer.
func (c *client) send(ctx context.Context, address, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader(body))
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
	read, err := meaning(got)
	wanted, errWant := meaning(want)
	if err == nil && errWant == nil && maps.Equal(read, wanted) {
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

// meaning returns what a client gets from an answer of any format: for each member that counts, its values
// one after the other, so that the pieces of a stream may be others. An id counts once.
func meaning(body []byte) (map[string]string, error) {
	units := [][]byte{body}
	if !bytes.HasPrefix(body, []byte("{")) {
		units = bytes.Split(bytes.TrimSuffix(body, []byte("\n\n")), []byte("\n\n"))
	}
	all := map[string]string{}
	for _, unit := range units {
		_, data, isEvent := bytes.Cut(unit, []byte("data: "))
		if !isEvent {
			data = unit
		}
		if string(data) == "[DONE]" {
			all["done"] = "done"
			continue
		}
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			return nil, err
		}
		addMeaning(all, "", value)
	}
	return all, nil
}

func addMeaning(all map[string]string, key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if key == "input" {
			input, _ := json.Marshal(v)
			all[key] += string(input)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			addMeaning(all, k, v[k])
		}
	case []any:
		for _, item := range v {
			addMeaning(all, key, item)
		}
	case string:
		switch key {
		case "content", "text", "delta", "partial_json", "arguments", "name", "finish_reason", "stop_reason":
			all[key] += v
		case "id", "call_id":
			all["id "+v] = v
		}
	case float64:
		if strings.HasSuffix(key, "_tokens") {
			all[key] = fmt.Sprint(v) // the last one counts
		}
	}
}
