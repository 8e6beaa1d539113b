package envelope

import (
	"strings"
)

// prefix returns what may stand in front of a body.
func (m *mutator) prefix() string {
	return pick(m.draw, "prefix", "", "", "", "", "\ufeff", " \n", "\t")
}

// frame returns the answer as a body.
func (m *mutator) frame(f Format, stream bool) string {
	switch {
	case !stream && len(m.good) > 0:
		return m.prefix() + m.good[0].data.String()
	case f.lines:
		return m.lines()
	}
	return m.events()
}

// cut ends a body too early, puts a byte into it that is not UTF-8, adds what
// does not belong there, or changes what is between the texts.
func (m *mutator) cut(body string) string {
	switch at := m.draw("cut at", len(body)+1); m.draw("cut", 12) {
	case 0:
		return body[:at]
	case 1:
		return body[:at] + "\xff" + body[at:]
	case 2:
		return body + pick(m.draw, "rest", "\n", "}", "data: [DONE]\n\n", "{}", "\x00")
	case 3:
		return m.between(body)
	}
	return body
}

// between changes one place where a text, a line or a field begins.
func (m *mutator) between(body string) string {
	old := pick(m.draw, "old", "\n", "\n\n", "data: ", "data: {", `,"`, "{", "event: ")
	parts := strings.Split(body, old)
	at := m.draw("between", len(parts))
	by := pick(m.draw, "by", "\r", "\r\r", "\r\n", "\n", ": x\r"+old, old+"\r", "\r"+old, "foo\n\n"+old, "event: x\r"+old, "\ufeff"+old, ": x\r\r\n"+old, old+"\ndata: ", "", old+"\v", old+"\u00a0")
	return strings.Join(parts[:at], old) + by + strings.Join(parts[at:], old)
}

// lines returns the events as newline-delimited JSON.
func (m *mutator) lines() string {
	end := []string{"\n", "\n", "\r\n", "\n\n"}[m.draw("line end", 4)]
	var b strings.Builder
	b.WriteString(m.prefix())
	for _, e := range m.good {
		b.WriteString(e.data.String() + end)
	}
	return b.String()
}

// events returns the events as server-sent events.
func (m *mutator) events() string {
	end := []string{"\n", "\n", "\n", "\r\n", "\r"}[m.draw("line end", 5)]
	var b strings.Builder
	b.WriteString(m.prefix())
	hidden := -1
	if m.draw("hide", 4) == 0 {
		hidden = m.draw("hidden", len(m.good)+1)
	}
	for i, e := range m.good {
		if i == hidden {
			b.WriteString(m.hidden(end))
		}
		if e.name != "" {
			b.WriteString("event: " + e.name + end)
		}
		data := e.data.String()
		if at := strings.Index(data, `,"`); at > 0 && m.draw("fold", 12) == 0 { // white space between members
			data = data[:at+1] + end + "data: " + data[at+1:]
		}
		b.WriteString("data: " + data + end + end)
	}
	if hidden == len(m.good) {
		b.WriteString(m.hidden(end))
	}
	return b.String()
}

// hidden returns an evil event that some readers do not take for one.
func (m *mutator) hidden(end string) string {
	if len(m.evil) == 0 {
		return ""
	}
	e := m.evil[m.draw("evil event", len(m.evil))]
	text := "data: " + e.data.String()
	if e.name != "" {
		text = "event: " + e.name + "\r" + text
	}
	switch m.draw("hidden how", 6) {
	case 0:
		return ": comment\r" + text + "\r\r" + end
	case 1:
		return "foo" + end + end + strings.ReplaceAll(text, "\r", end) + end + end
	case 2:
		return "id: 1\r" + text + "\r\r\n" + end
	case 3:
		return ": comment\u2028" + text + end + end
	case 4:
		return "data" + end + strings.ReplaceAll(text, "\r", end) + end + end
	}
	return "retry: 1" + end + ": " + text + end + end
}
