package agentloop

// The turn in hand, for tests that look at it or damage it.
type (
	TurnCall   = turnCall
	CallStatus = callStatus
)

// The statuses of a call.
const (
	CallReady   = callReady
	CallWaiting = callWaiting
	CallDone    = callDone
)

// Turn returns the calls of the turn in hand, to be read and changed.
func (s *State) Turn() []TurnCall { return s.turn }

// SetTurn replaces the turn in hand.
func (s *State) SetTurn(calls ...TurnCall) { s.turn = calls }
