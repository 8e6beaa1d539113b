package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// maxLine bounds what one line may take of the memory, in bytes. Requests with
// images in them make lines of tens of megabytes; a file without line ends is
// no log.
const maxLine = 256 << 20

// Reader reads a file line by line, in memory of one line. A file that is one
// JSON array, or whose first line is the beginning of an object, as pretty printers
// write it, is read record by record. It is for one goroutine; its lines may go to any.
type Reader struct {
	file  string        // what lines are said to come from
	from  io.Reader     // the bytes as they are
	src   *bufio.Reader // the same without gzip; nil before the first line
	n     int           // number of the line read last
	many  *values       // the records are not one a line
	max   int           // bytes of a line
	done  bool          // after this, only io.EOF
	begun bool          // there was a line that is not blank

	session *session
	queue   []lineOrError // what Next returns before it reads on
	cut     *Line         // the last line so far, if it is not JSON
	unended bool          // the last line so far has no line end
	ended   bool          // queue has what is known at the end
}

// NewReader returns a reader of r, whose lines are said to come from file.
// gzip is undone, whatever the file is called.
func NewReader(file string, r io.Reader) *Reader {
	return &Reader{file: file, from: r, max: maxLine, session: newSession(file, map[callKey]bool{})}
}

// All yields the results of Next up to the end.
func (r *Reader) All() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for {
			line, err := r.Next()
			if err == io.EOF || !yield(line, err) {
				return
			}
		}
	}
}

// raw returns the next line as it is.
func (r *Reader) raw() (Line, error) {
	if r.done {
		return Line{}, io.EOF
	}
	if r.src == nil {
		var err error
		if r.src, err = Decompressed(r.from); err != nil {
			return Line{}, r.end(err)
		}
	}
	for {
		if r.many != nil {
			text, n, err := r.many.next()
			r.n = n
			if err != nil {
				return Line{}, r.end(err)
			}
			return Line{File: r.file, N: n, Text: text}, nil
		}
		text, err := r.line()
		switch {
		case errors.Is(err, errTooLong):
			return Line{}, &Error{File: r.file, Line: r.n, Err: err}
		case err != nil && err != io.EOF:
			return Line{}, r.end(err)
		}
		if r.n == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		line := text
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if !r.begun && (text[0] == '[' || text[0] == '{' && endsEarly(text)) {
				r.many = newValues(line, r.n, r.src, r.max)
				continue
			}
			r.begun, r.unended = true, err == io.EOF
			return Line{File: r.file, N: r.n, Text: text}, nil
		}
		if err == io.EOF {
			return Line{}, r.end(err)
		}
	}
}

// endsEarly reports whether a text is the beginning of JSON.
func endsEarly(text []byte) bool {
	_, err := rawjson.Parse(string(text), lineLimits)
	var broken *rawjson.Error
	return errors.As(err, &broken) && broken.AtEnd
}

// Decompressed returns a reader of r without gzip, if it has that. The first bytes say so:
// 1f 8b is gzip (RFC 1952, section 2.3.1).
func Decompressed(r io.Reader) (*bufio.Reader, error) {
	src := bufio.NewReaderSize(r, 64<<10)
	switch magic, _ := src.Peek(4); {
	case string(magic) == "PK\x03\x04":
		return nil, errors.New("a zip archive: write an .eval log of Inspect as JSON first, with inspect log convert --to json")
	case !bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return src, nil
	}
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 256<<10), nil
}

// end makes err the last one but io.EOF.
func (r *Reader) end(err error) error {
	r.done = true
	if err == io.EOF {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the compressed file ends in the middle: %w", err)
	}
	return &Error{File: r.file, Line: r.n, Err: err}
}

// errTooLong is the one error of line after which reading goes on.
var errTooLong = errors.New("the line is too long")

// line returns the next line in memory of its own. Of a line that is too long
// it reads the rest and keeps nothing.
func (r *Reader) line() ([]byte, error) {
	var text []byte
	r.n++
	tooLong := false
	for {
		piece, err := r.src.ReadSlice('\n')
		if !tooLong && len(text)+len(piece) > r.max {
			tooLong, text = true, nil
		}
		if !tooLong {
			text = append(text, piece...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if tooLong && (err == nil || err == io.EOF) {
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, r.max)
		}
		return text, err
	}
}
