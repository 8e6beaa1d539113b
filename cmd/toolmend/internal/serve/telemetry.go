package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/gateway"
)

// flushTimeout limits how long exporters send what is left when the gateway has
// stopped.
const flushTimeout = 5 * time.Second

// telemetry is where metrics and spans go: the metrics to a page, and both to
// the exporters of the OTEL_* variables.
type telemetry struct {
	page      http.Handler
	meters    *sdkmetric.MeterProvider
	tracers   *sdktrace.TracerProvider // nil without an exporter of spans
	exporters int                      // that the variables turned on
}

// newTelemetry returns the telemetry of the environment. It connects to nothing
// unless a variable names an exporter or an endpoint.
func newTelemetry(ctx context.Context, log *slog.Logger) (*telemetry, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("telemetry", "error", err) }))
	who, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "toolmend"), attribute.String("service.version", cli.Version()),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	page, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	t := &telemetry{page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})}
	readers := []sdkmetric.Option{sdkmetric.WithResource(who), sdkmetric.WithReader(page)}
	if exports("METRICS") {
		r, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, fmt.Errorf("the OTEL_* variables for metrics: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(r))
		t.exporters++
	}
	if exports("TRACES") {
		e, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("the OTEL_* variables for traces: %w", err)
		}
		t.tracers = sdktrace.NewTracerProvider(sdktrace.WithResource(who), sdktrace.WithBatcher(e))
		t.exporters++
	}
	if t.tracers == nil { // an exemplar names a span
		readers = append(readers, sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	}
	t.meters = sdkmetric.NewMeterProvider(readers...)
	return t, nil
}

// exports reports whether the environment turns on the export of a signal,
// METRICS or TRACES. Autoexport alone would export to localhost without any
// variable.
func exports(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if name := os.Getenv("OTEL_" + signal + "_EXPORTER"); name != "" {
		return name != "none"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// options returns the options of a gateway that reports to t.
func (t *telemetry) options(log *slog.Logger) gateway.Options {
	o := gateway.Options{Logger: log, MeterProvider: t.meters, Metrics: t.page, Decoders: decoders}
	if t.tracers != nil {
		o.TracerProvider = t.tracers
	}
	return o
}

// close sends what is left.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var err error
	if t.tracers != nil {
		err = t.tracers.Shutdown(ctx)
	}
	return errors.Join(err, t.meters.Shutdown(ctx))
}
