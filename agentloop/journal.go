package agentloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// SaveFile writes s to a file with mode 0600, so that LoadFile can read it. The
// first save writes the whole state. A later save of s appends what is new, if
// the file is still the one that it wrote. Now and then, and after a message was
// changed, it writes the whole state again. When SaveFile has returned nil, the
// state survives a crash and a power failure. If the process or the machine dies
// during SaveFile, the file has either the old or the new state. After an error
// it has one of both, and the next save writes the whole state.
//
// Only one process at a time may write a file. Options.Checkpoint may be
// func(_ context.Context, s *State) error { return SaveFile(name, s) }. Each save
// then takes the time of what is new, however long the conversation is.
func SaveFile(name string, s *State) error {
	j := s.journal
	if j == nil || j.name != name {
		j = &journal{name: name}
		s.journal = j
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var known extent
	checkpoint := s.live != nil && s.live.state == s && s.live.saving
	if checkpoint {
		known = j.known
	}
	if err := j.save(s, known); err != nil {
		j.contents = contents{}
		return err
	}
	j.known = extent{}
	if checkpoint {
		j.known = j.encoder.extent()
	}
	return nil
}

// LoadFile reads a state that SaveFile wrote, also in the form of earlier versions,
// which is the JSON of a state. If the process that wrote the file died while it
// appended a record, LoadFile ignores what there is of that record. The error wraps
// fs.ErrNotExist if there is no such file, ErrVersion if a newer version wrote it,
// and ErrState if it is damaged.
func LoadFile(name string) (*State, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(State)
	if rest, ok := bytes.CutPrefix(b, []byte(journalMark)); ok {
		err = s.readRecords(rest)
	} else if err = json.Unmarshal(b, s); err != nil && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrState) {
		err = fmt.Errorf("%w: %w", ErrState, err)
	}
	if err != nil {
		return nil, fmt.Errorf("agentloop: %s: %w", name, err)
	}
	return s, nil
}

// A journal is journalMark and records. Each record is the length of a document,
// a checksum of this and all documents before, the document, and a newline. The
// first document is the whole state. The others have the messages, steps and
// results that are new, and all else as it is now: see State.extend.
const journalMark = "toolmend state journal\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header returns what is in front of a document, and the checksum after it. sum is
// the checksum before.
func header(doc []byte, sum uint32) (string, uint32) {
	sum = crc32.Update(sum, castagnoli, doc)
	return fmt.Sprintf("%d %08x ", len(doc), sum), sum
}

// readRecords reads the records of a journal into s, which is empty. Only the last
// record may be incomplete, and not the first: that one is written before the file
// gets its name.
func (s *State) readRecords(b []byte) error {
	var sum uint32
	for n := 0; len(b) > 0 || n == 0; n++ {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		length, after, _ := bytes.Cut(line, []byte(" "))
		_, doc, _ := bytes.Cut(after, []byte(" "))
		over := false // there is more than a record, and no terminator
		if size, err := strconv.ParseUint(string(length), 10, 32); !ended && err == nil && size < uint64(len(doc)) {
			doc, over = doc[:size], true
		}
		head, now := header(doc, sum)
		intact := bytes.HasPrefix(line, []byte(head))
		if !ended && n > 0 && !(over && intact) {
			return nil
		}
		if !ended || !intact {
			return fmt.Errorf("%w: record %d", ErrState, n)
		}
		if err := s.extend(doc); err != nil && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrState) {
			return fmt.Errorf("%w: record %d: %w", ErrState, n, err)
		} else if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		b, sum = rest, now
	}
	return nil
}

// journal is a file that SaveFile has written.
type journal struct {
	name string
	mu   sync.Mutex
	contents
}

// contents are what a journal has after a save.
type contents struct {
	file    os.FileInfo       // nil: the next save writes the whole state
	whole   int64             // bytes that it had when it was last written whole
	sum     uint32            // of all its documents
	turn    []json.RawMessage // of the state
	idle    []byte            // the next document if nothing changes
	known   extent            // what only the loop can have changed since
	encoder Encoder
}

const (
	minJournal = 64 << 10 // up to this size a journal is not written whole again
	maxGrowth  = 3        // then it is when it has this many times its size at the last time
)

// save writes s. What is known has not changed since the last save.
func (j *journal) save(s *State, known extent) error {
	was := j.encoder.extent()
	kept, err := j.encoder.update(s, known)
	if err != nil {
		return err
	}
	turn, err := encodeAll(s.turn)
	if err != nil {
		return err
	}
	done := j.file != nil && kept == was
	if done {
		if done, err = j.append(s, turn, kept); err != nil {
			return err
		}
	}
	if !done {
		if err := j.rewrite(s, turn); err != nil {
			return err
		}
	}
	j.turn = turn
	j.idle, err = j.encoder.document(s, make([]json.RawMessage, len(turn)), j.encoder.extent())
	return err
}

// append writes what s has beyond kept. It reports false if the whole state has to
// be written, because the file is another one or has become long.
func (j *journal) append(s *State, turn []json.RawMessage, kept extent) (done bool, err error) {
	changed := slices.Clone(turn)
	for i := range min(len(turn), len(j.turn)) {
		if bytes.Equal(turn[i], j.turn[i]) {
			changed[i] = nil
		}
	}
	doc, err := j.encoder.document(s, changed, kept)
	if err != nil {
		return false, err
	}
	head, sum := header(doc, j.sum)
	record := slices.Concat([]byte(head), doc, []byte("\n"))
	if j.file.Size()+int64(len(record)) > max(minJournal, maxGrowth*j.whole) {
		return false, nil
	}
	f, err := os.OpenFile(j.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false, nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := f.Stat()
	switch {
	case err != nil || !os.SameFile(now, j.file) || now.Size() != j.file.Size() || !now.ModTime().Equal(j.file.ModTime()):
		return false, nil
	case bytes.Equal(doc, j.idle):
		return true, nil
	}
	if _, err := f.Write(record); err != nil {
		return false, err
	}
	if err := f.Sync(); err != nil {
		return false, err
	}
	j.sum = sum
	j.file, err = f.Stat()
	return true, err
}

// rewrite writes the whole state. It writes a new file in the same folder, syncs
// it, renames it and syncs the folder.
func (j *journal) rewrite(s *State, turn []json.RawMessage) error {
	doc, err := j.encoder.document(s, turn, extent{})
	if err != nil {
		return err
	}
	var head string
	head, j.sum = header(doc, 0)
	f, err := os.CreateTemp(filepath.Dir(j.name), filepath.Base(j.name)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Concat([]byte(journalMark+head), doc, []byte("\n")))
	err = errors.Join(err, f.Sync())
	var file os.FileInfo
	if err == nil {
		file, err = f.Stat()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), j.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	j.file, j.whole = file, file.Size()
	return syncFolder(filepath.Dir(j.name))
}

// syncFolder makes a rename in the folder last. Windows has no such call, and
// needs none.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
