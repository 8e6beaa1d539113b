package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

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
	file    string    // what lines are said to come from
	from    io.Reader // the bytes as they are
	max     int       // bytes of a line
	session *session
}

// NewReader returns the reader of a file that is the whole log. See Log.Reader.
func NewReader(file string, r io.Reader) *Reader { return NewLog().Reader(file, r) }

// All yields the lines that are not blank, without their ends. The Text of a line is the
// caller's. Lines that belong together, as those of a session of an agent, are read to the
// end of the file: in their places come lines that have nothing but a reason why they are
// skipped, and at the end a line for each turn. An error is an *Error; reading goes on after
// it where that is possible. All reads the file, so it can be used once.
func (r *Reader) All() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		s := r.session
		var cut *Line // the last line so far, if it is not JSON: the file may be cut off there
		for l, err := range r.lines() {
			before := cut
			cut = nil
			if err == nil {
				if doc, failed := rawjson.Parse(string(l.Text), lineLimits); failed != nil {
					cut = &l
				} else {
					l.value = doc.Root()
					s.look(&l)
				}
			}
			if before != nil && !yield(*before, nil) || cut == nil && !yield(l, err) {
				return
			}
		}
		var last []Line
		if cut != nil {
			if s.form != nil && cut.unended && endsEarly(cut.Text) {
				cut.skip = SkippedCut
			}
			last = append(last, *cut)
		}
		for _, t := range s.take() {
			last = append(last, Line{File: r.file, N: t.Line, turn: &t})
		}
		last = append(last, slices.Repeat([]Line{{File: r.file, skip: SkippedRepeat}}, s.repeats)...)
		for _, l := range last {
			if !yield(l, nil) {
				return
			}
		}
		for _, err := range s.errs {
			if !yield(Line{}, err) {
				return
			}
		}
	}
}

// lines yields the lines as they are.
func (r *Reader) lines() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		src, err := Decompressed(r.from)
		var many *values // the records are not one a line
		begun := false   // there was a line that is not blank
		n := 0
		for err == nil {
			l := Line{File: r.file}
			if many != nil {
				if l.Text, n, err = many.next(); err != nil {
					break
				}
			} else {
				n++
				var line []byte
				line, err = readLine(src, r.max)
				if errors.Is(err, errTooLong) {
					if !yield(Line{}, &Error{File: r.file, Line: n, Err: err}) {
						return
					}
					err = nil
					continue
				} else if err != nil && err != io.EOF {
					break
				}
				if n == 1 {
					line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
				}
				if l.Text = bytes.TrimSpace(line); len(l.Text) == 0 {
					continue
				}
				if !begun && (l.Text[0] == '[' || l.Text[0] == '{' && endsEarly(l.Text)) {
					many, err = newValues(line, n, src, r.max), nil
					continue
				}
				begun, l.unended = true, err == io.EOF
			}
			if l.N = n; !yield(l, nil) {
				return
			}
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("the compressed file ends in the middle: %w", err)
		}
		if err != io.EOF {
			yield(Line{}, &Error{File: r.file, Line: n, Err: err})
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

// errTooLong is the one error of readLine after which reading goes on.
var errTooLong = errors.New("the line is too long")

// readLine returns the next line, of at most a number of bytes, in memory of its own. Of a
// line that is too long it reads the rest and keeps nothing.
func readLine(src *bufio.Reader, most int) ([]byte, error) {
	var text []byte
	tooLong := false
	for {
		piece, err := src.ReadSlice('\n')
		if !tooLong && len(text)+len(piece) > most {
			tooLong, text = true, nil
		}
		if !tooLong {
			text = append(text, piece...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if tooLong && (err == nil || err == io.EOF) {
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, most)
		}
		return text, err
	}
}
