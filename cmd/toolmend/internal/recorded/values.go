package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// values reads records that are not one a line, as pretty printers write them:
// the elements of one JSON array, or one JSON value after another.
type values struct {
	d     *json.Decoder
	from  io.Reader
	array bool // the array has begun and not ended
	left  int  // bytes that may be read before the next record
	most  int  // left, behind each record
	at    int64
	ends  []int64 // where lines end that no record has passed yet
	line  int     // of what comes before those, from 1
	err   error   // of from
}

var errNoEnd = errors.New("not JSON: the file ends in the middle of a record or an array")

// newValues returns a reader of what begins with head, in that line, and goes
// on in rest.
func newValues(head []byte, line int, rest io.Reader, most int) *values {
	v := &values{from: io.MultiReader(bytes.NewReader(head), rest), left: most, most: most, line: line}
	v.d = json.NewDecoder(v)
	if v.array = bytes.HasPrefix(bytes.TrimSpace(head), []byte("[")); v.array {
		_, _ = v.d.Token() // the bracket
	}
	return v
}

// Read gives the decoder at most the bytes that a record may have.
func (v *values) Read(p []byte) (int, error) {
	if v.left <= 0 {
		return 0, fmt.Errorf("%w: a record of more than %d bytes", errTooLong, v.most)
	}
	n, err := v.from.Read(p[:min(len(p), v.left)])
	for i, c := range p[:n] {
		if c == '\n' {
			v.ends = append(v.ends, v.at+int64(i))
		}
	}
	v.at += int64(n)
	v.left -= n
	v.err = err
	return n, err
}

// next returns the next record, and the line in which it begins. The error is
// io.EOF behind the last one.
func (v *values) next() (text []byte, line int, err error) {
	if v.array && !v.d.More() {
		if _, err = v.d.Token(); err == io.EOF {
			err = errNoEnd
		}
		if err != nil {
			return nil, v.line, err
		}
		v.array = false // another array may follow, as a line
	}
	var raw json.RawMessage
	err = v.d.Decode(&raw)
	if errors.Is(err, io.ErrUnexpectedEOF) && v.err == io.EOF {
		err = errNoEnd
	}
	start := v.d.InputOffset() - int64(len(raw))
	for len(v.ends) > 0 && v.ends[0] < start {
		v.ends = v.ends[1:]
		v.line++
	}
	v.left = v.most
	return raw, v.line, err
}
