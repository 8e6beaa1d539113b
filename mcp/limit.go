package mcp

import (
	"context"
	"mime"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bounded returns transport with a limit on the bytes of one message. The SDK
// limits lines and events to 16 MiB, but reads other HTTP bodies whole.
func bounded(transport sdk.Transport) sdk.Transport {
	streamable, ok := transport.(*sdk.StreamableClientTransport)
	if !ok {
		return transport
	}
	t, client := *streamable, http.Client{}
	if t.HTTPClient != nil {
		client = *t.HTTPClient
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = boundedBodies{client.Transport}
	t.HTTPClient = &client
	return &t
}

// boundedBodies is a client's transport. Its response bodies end with an error
// after maxMessage bytes, except for event streams.
type boundedBodies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedBodies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxMessage)
	}
	return resp, nil
}

// firstTools is a middleware of the SDK's client. It cuts a page of tools to
// the tools that are read and one more, because the SDK's later checks take 32
// KB for each tool.
func firstTools(most int) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if page, ok := res.(*sdk.ListToolsResult); ok && page != nil && len(page.Tools) > most {
				page.Tools = page.Tools[: most+1 : most+1]
			}
			return res, err
		}
	}
}
