package report

import "github.com/toolmend/toolmend/middleware"

// Counts counts calls. Of a step with several attempts it counts the calls of each.
type Counts struct {
	Calls int `json:"calls"`

	// As the model wrote them. The rest of Calls is valid.
	Invalid     int `json:"invalid"`
	Unparseable int `json:"unparseable"` // not JSON, or not an object
	Unknown     int `json:"unknown"`     // calls of an unknown tool
	Truncated   int `json:"truncated"`
	Unchecked   int `json:"unchecked"`          // no usable schema; not part of the rates
	Unusable    int `json:"unusable"`           // the part of Unchecked whose schema cannot be used
	Announced   int `json:"announced,omitzero"` // the part of Unchecked whose tool the request announces, and does not list

	// Changes.
	Stripped int `json:"stripped"` // empty values were removed
	Mended   int `json:"mended"`   // changed in another way
	Repaired int `json:"repaired"` // not valid as sent, and valid in the end

	// In the end.
	Final   int `json:"final"`   // not valid
	Reasked int `json:"reasked"` // the part of Final after which the model was asked again

	// Of the first attempts.
	First      int `json:"first"`       // calls that were validated
	FirstValid int `json:"first_valid"` // calls that were valid as sent
}

// Bad returns the number of calls that were not valid as sent.
func (c Counts) Bad() int { return c.Invalid + c.Unparseable + c.Unknown + c.Truncated }

// Checked returns the number of calls that were validated.
func (c Counts) Checked() int { return c.Calls - c.Unchecked }

// Failed returns the number of calls that are not valid and that the client got.
func (c Counts) Failed() int { return c.Final - c.Reasked }

// add counts a call of an attempt. A call that was stripped and is still invalid
// is returned unchanged, so it counts neither as stripped nor as mended.
func (c *Counts) add(call *Call, first, reasked bool) {
	c.Calls++
	switch call.AsSent {
	case Invalid:
		c.Invalid++
	case BadJSON, NotObject:
		c.Unparseable++
	case UnknownTool:
		c.Unknown++
	case Truncated:
		c.Truncated++
	case NoSchema, BadSchema, Announced:
		c.Unchecked++
		switch call.AsSent {
		case BadSchema:
			c.Unusable++
		case Announced:
			c.Announced++
		}
	}
	stripped, mended := changed(call.Changes)
	if stripped {
		c.Stripped++
	}
	if mended {
		c.Mended++
	}
	if call.AsSent.Failed() && call.Final.Good() {
		c.Repaired++
	}
	if len(call.FinalIssues) > 0 {
		c.Final++
		if reasked {
			c.Reasked++
		}
	}
	if first && !call.AsSent.Unchecked() {
		c.First++
		if call.AsSent == OK {
			c.FirstValid++
		}
	}
}

// changed reports whether empty values were removed, and whether there was another
// repair.
func changed(changes []middleware.Change) (stripped, mended bool) {
	for _, ch := range changes {
		switch ch.By {
		case "strip":
			stripped = true
		case "empty": // "" was read as {}, which is valid
		default:
			mended = true
		}
	}
	return stripped, mended
}
