package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// ErrUnreadable is the error for a response that cannot be read and may hold a
// tool call, if the request offered tools. With Options.PassUnreadable such
// responses are passed on instead.
var ErrUnreadable error = &ownError{"unreadable_answer", "transport: the answer cannot be read and may hold a tool call that was not validated"}

// errOpaque marks a response that cannot be searched for calls.
var errOpaque = errors.New("its bytes cannot be searched")

// strict reports whether a response must be read before the client gets it.
func (x *exchange) strict() bool { return x.tools && !x.t.options.PassUnreadable }

// emptyReason returns the reason why clients do not read an answer in a response, or "".
func emptyReason(resp *http.Response) string {
	switch {
	case resp.StatusCode < 200 || isError(resp.StatusCode) || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		return "status " + http.StatusText(resp.StatusCode)
	case resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0:
		return "no body"
	}
	return ""
}

// isError reports whether all clients take a response with this status for an error. Some read an
// answer in one with a status from 600 on.
func isError(status int) bool { return status >= 400 && status < 600 }

// unsupported returns the reason why the codec must not read a response, or nil. The error wraps
// errOpaque if the body cannot be searched either.
func (x *exchange) unsupported(resp *http.Response) error {
	coding := encoding(resp)
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	media, _, _ := strings.Cut(kind, "/")
	switch {
	case resp.ContentLength > x.t.options.MaxBody:
		return fmt.Errorf("a body of more than MaxBody: %w", errOpaque)
	case coding != "" && coding != "gzip":
		return fmt.Errorf("a Content-Encoding that is not known: %w", errOpaque)
	case kind == "application/vnd.amazon.eventstream": // its payloads are base64
		return fmt.Errorf("a binary stream: %w", errOpaque)
	case x.strict() && !inUTF8(resp.Header.Values("Content-Type")):
		return fmt.Errorf("a charset that is not UTF-8: %w", errOpaque)
	case x.strict(): // the body decides, whatever else Content-Type says
		return nil
	case kind == "text/html", slices.Contains([]string{"multipart", "audio", "image", "video"}, media):
		return errors.New("a Content-Type of another kind") // this is known without reading the body to its end
	}
	return nil
}

// inUTF8 reports whether all clients decode a body with these values of Content-Type as UTF-8.
// In another charset the body could hold other calls.
func inUTF8(kinds []string) bool {
	for _, kind := range kinds {
		named := strings.Count(strings.ToLower(kind), "charset")
		_, parameters, err := mime.ParseMediaType(kind)
		if named > 0 && (named > 1 || err != nil || strings.Contains(kind, "*") ||
			!slices.Contains([]string{"utf-8", "utf8", "us-ascii", "ascii"}, strings.ToLower(parameters["charset"]))) {
			return false
		}
	}
	return true
}

// encoding returns the content coding of a response: "" for none, gzip, or the
// whole value of the header. Source: RFC 9110, section 8.4.1.
func encoding(resp *http.Response) string {
	var codings []string
	for name := range strings.SplitSeq(strings.Join(resp.Header.Values("Content-Encoding"), ","), ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity", "none", "utf-8": // the last two are not codings, but servers send them
		case "x-gzip":
			codings = append(codings, "gzip")
		default:
			codings = append(codings, name)
		}
	}
	return strings.Join(codings, ", ")
}

// unreadable ends a with the error for a response that the codec cannot read. The client gets the
// response unchanged, or ErrUnreadable if the response may hold a call.
func (x *exchange) unreadable(ctx context.Context, a *attempt, body io.Reader, why error) error {
	if x.strict() {
		may, err := x.mayHoldCall(ctx, a, body, why)
		if err != nil {
			return err
		}
		if may {
			return fmt.Errorf("%w: %w", ErrUnreadable, why)
		}
	}
	a.body.hold = nil
	x.mu.Lock()
	live := x.live == a
	if !live && x.latest == a { // a keep-alive must not make it live from now on
		x.latest = nil
	}
	x.mu.Unlock()
	if live {
		return x.passThrough(a, body, why)
	}
	if a.inflate {
		a.resp.Body = readCloser{body, a.resp.Body}
	}
	return a.passOn(why)
}

// mayHoldCall reads the rest of a response, and reports whether it may hold a call.
func (x *exchange) mayHoldCall(ctx context.Context, a *attempt, body io.Reader, why error) (bool, error) {
	room := x.t.options.MaxBody - int64(len(a.receivedText()))
	if errors.Is(why, errOpaque) || room < 0 {
		return true, nil
	}
	rest, err := io.ReadAll(io.LimitReader(body, room+1))
	a.raw = append(a.raw, rest...)
	switch {
	case err != nil:
		return true, x.networkFailure(ctx, a, err)
	case int64(len(rest)) > room:
		return true, nil
	}
	text := a.receivedText()
	return x.codec.MayHoldCall(joinedLines(text, false)) || x.codec.MayHoldCall(joinedLines(text, true)), nil
}

// joinedLines returns text without line ends and the white space around them; bare leaves out the
// lines that begin with "data: ". google-genai for Python joins the other lines, so a word for
// calls may be divided between two of them.
func joinedLines(text string, bare bool) []byte {
	var out []byte
	for line := range strings.FieldsFuncSeq(text, isLineEnd) {
		if !bare || !strings.HasPrefix(line, "data: ") {
			out = append(out, strings.TrimFunc(line, unicode.IsSpace)...)
		}
	}
	return out
}

// isLineEnd reports whether a client may end a line at r.
func isLineEnd(r rune) bool { return strings.ContainsRune("\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) }

// passThrough streams the rest of a live response to the client, unread.
func (x *exchange) passThrough(a *attempt, body io.Reader, why error) error {
	x.mu.Lock()
	x.noKeepAlive = true
	x.mu.Unlock()
	x.out.put(a.stream.Passed(a.unsent()), false)
	buf := make([]byte, 32<<10)
	for a.bodyErr == nil {
		n, readErr := body.Read(buf)
		if !x.out.put(bytes.Clone(buf[:n]), false) || !x.out.wait() {
			readErr = io.ErrClosedPipe
		}
		a.bodyErr = readErr
	}
	if a.bodyErr == io.EOF {
		a.bodyErr = nil
	}
	a.passedThrough = true
	return a.fail(&passedError{why})
}
