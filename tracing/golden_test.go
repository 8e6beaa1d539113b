package tracing_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoldenSpanTree(t *testing.T) {
	t.Parallel()
	for _, withContent := range []bool{false, true} {
		name := "reasked.txt"
		if withContent {
			name = "reasked_content.txt"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			o := l.options()
			o.Content, o.Redact = withContent, func(s string) string { return strings.ReplaceAll(s, "secret-iban", "IBAN") }
			model := script(turn{err: &middleware.ModelError{StatusCode: 503}}, answer(bad), answer(good))
			_, err := stack(o, func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				_, span := l.tp.Tracer("http").Start(ctx, "POST", trace.WithSpanKind(trace.SpanKindClient))
				defer span.End()
				return model(ctx, req)
			})(t.Context(), request())
			require.NoError(t, err)
			var b strings.Builder
			tree(&b, l.spans.GetSpans(), trace.SpanID{}, "")
			path := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String())
		})
	}
}

// tree writes the spans below parent, without what changes from run to run.
func tree(b *strings.Builder, spans tracetest.SpanStubs, parent trace.SpanID, indent string) {
	for _, s := range spans {
		if s.Parent.SpanID() != parent {
			continue
		}
		fmt.Fprintf(b, "%s%s (%s, %s)\n", indent, s.Name, s.SpanKind, s.Status.Code)
		list(b, s.Attributes, indent+"    ")
		for _, e := range s.Events {
			fmt.Fprintf(b, "%s  * %s\n", indent, e.Name)
			list(b, e.Attributes, indent+"      ")
		}
		tree(b, spans, s.SpanContext.SpanID(), indent+"  ")
	}
}

func list(b *strings.Builder, kvs []attribute.KeyValue, indent string) {
	kvs = slices.Clone(kvs)
	slices.SortFunc(kvs, func(x, y attribute.KeyValue) int { return strings.Compare(string(x.Key), string(y.Key)) })
	for _, kv := range kvs {
		fmt.Fprintf(b, "%s%s = %s\n", indent, kv.Key, kv.Value.Emit())
	}
}
