// Command faulty is a model that makes mistakes, for trying the gateway without a
// key. It speaks the formats of OpenAI, Anthropic, Gemini and Ollama, streamed or not.
// It calls the first tool that a request offers. Two of three calls have a fault of
// real models: a misnamed property, a number as text, null for an optional property.
// When it is told what is wrong, it sends the call again.
//
//	go run ./examples/faulty -listen 127.0.0.1:8099
//
// Without -listen it answers three requests of its own, prints the calls, and ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/wire"
)

func main() {
	listen := flag.String("listen", "", "the `ADDRESS` to serve, until it is interrupted; none: answer three requests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, listen string) error {
	address := listen
	if listen == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: newHandler(), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	if listen == "" {
		err = ask(ctx, out, "http://"+l.Addr().String()+"/v1")
	} else {
		fmt.Fprintf(out, "a model that makes mistakes listens on http://%s\n", l.Addr())
		<-ctx.Done()
	}
	_ = s.Close()
	<-ended
	return err
}

// newHandler serves the model in every format.
func newHandler() http.Handler {
	model := middlewaretest.NewFaulty(3, middlewaretest.FaultOptions{
		Calls:       1,
		AnswerAfter: middlewaretest.NeverAnswer,
		Rates:       map[middlewaretest.Fault]float64{"misnamed key": 0.35, "number as text": 0.35, "null for optional": 0.35},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, codec := range wire.Codecs() {
			if !codec.Match(r.URL.Path, body) {
				continue
			}
			var answer []byte
			var contentType string
			req, err := codec.DecodeRequest(body)
			if err == nil {
				var resp *middleware.Response
				if resp, err = respond(r.Context(), model, req); err == nil {
					answer, contentType, err = codec.EncodeAnswer(r.URL.RequestURI(), body, resp)
				}
			}
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write(codec.EncodeError(http.StatusBadRequest, "", err.Error()))
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(answer)
			return
		}
		http.NotFound(w, r)
	})
}

// respond calls the first tool of the request until it has a result without an error.
func respond(ctx context.Context, model *middlewaretest.Faulty, req *middleware.Request) (*middleware.Response, error) {
	last := req.Messages[len(req.Messages)-1]
	if len(req.Tools) == 0 || last.Role == middleware.RoleTool && !last.IsError && !strings.Contains(last.Text(), "validation failed") {
		return &middleware.Response{Message: middleware.Assistant("Done."), FinishReason: middleware.FinishStop}, nil
	}
	req = req.Clone()
	req.Tools = req.Tools[:1]
	return model.Call(ctx, req)
}

// ask sends the model three requests.
func ask(ctx context.Context, out io.Writer, url string) error {
	call := wire.OpenAIChat().Model(wire.Endpoint{URL: url, Model: "faulty"})
	for range 3 {
		resp, err := call(ctx, &middleware.Request{
			Messages: []middleware.Message{middleware.User("How warm will it be in Oslo?")},
			Tools: []middleware.Tool{{Name: "get_forecast", Parameters: []byte(`{"type":"object",
				"properties":{"city":{"enum":["Oslo","Bergen"]},"days":{"type":"integer","minimum":1,"maximum":7},"unit":{"enum":["C","F"]}},
				"required":["city","days"],"additionalProperties":false}`)}},
		})
		if err != nil {
			return err
		}
		for _, c := range resp.Message.ToolCalls {
			fmt.Fprintln(out, c.Name, c.Arguments)
		}
	}
	return nil
}
