package middlewaretest

import "maps"

// Fault is one thing that real models get wrong.
type Fault string

// Faults in the values of the arguments. Each is written only where the tool's
// schema leaves room for it: a wrong enum value needs an enum.
const (
	FaultMissingKey         Fault = "missing required key"
	FaultMisnamedKey        Fault = "misnamed key"
	FaultNullOptional       Fault = "null for optional"
	FaultEmptyOptional      Fault = "empty for optional" // {}, [] or ""
	FaultNumberAsText       Fault = "number as text"
	FaultBoolAsText         Fault = "boolean as text"
	FaultArrayAsText        Fault = "JSON text for array"
	FaultObjectAsText       Fault = "JSON text for object"
	FaultScalarForArray     Fault = "scalar for array"
	FaultWrongEnum          Fault = "wrong enum value"
	FaultFractionForInteger Fault = "fraction for integer"
	FaultUndeclaredKey      Fault = "undeclared key"
)

// Faults in the text of the arguments. A call has at most one of them.
const (
	FaultDuplicateKey   Fault = "duplicate key"
	FaultTruncated      Fault = "truncated" // the last call is cut off, and the finish reason is length
	FaultUnterminated   Fault = "unterminated"
	FaultPythonDict     Fault = "Python dict"
	FaultComment        Fault = "comment"
	FaultTrailingComma  Fault = "trailing comma"
	FaultArithmetic     Fault = "arithmetic"
	FaultBareWord       Fault = "bare word"
	FaultTwoObjects     Fault = "two objects"
	FaultEmptyArguments Fault = "empty arguments"
	FaultNullArguments  Fault = "null arguments"
	FaultNotObject      Fault = "array or string for object"
	FaultDeepNesting    Fault = "deep nesting"  // 20,000 arrays in one another
	FaultHugeExponent   Fault = "huge exponent" // 1e3000000
	FaultInvalidUTF8    Fault = "invalid UTF-8"
)

// Faults in a call's name or id. A call has at most one of each.
const (
	FaultInventedName Fault = "invented name"
	FaultControlToken Fault = "control token in name" // ls<|channel|>commentary
	FaultPrefixedName Fault = "functions. prefix"
	FaultNameCase     Fault = "other letter case"
	FaultMissingID    Fault = "missing id"
	FaultBlankID      Fault = "blank id"
	FaultDuplicateID  Fault = "duplicate id in turn"
	FaultReusedID     Fault = "id of an earlier turn"
)

// Faults of a whole answer.
const (
	FaultRepeatedCall Fault = "repeated call"
	FaultLostSibling  Fault = "lost sibling"  // after a batch that failed in part, only the failed calls come back
	FaultRefusal      Fault = "refusal"       // a ModelError that wraps middleware.ErrInvalidToolCall, with Output
	FaultTransient    Fault = "transient"     // a ModelError with status 429 or 500
	FaultNoResponse   Fault = "no response"   // neither a response nor an error
	FaultTextAnswer   Fault = "text for call" // words where calls were asked for
)

// The faults in the order in which they are drawn, by what they break. The
// order is part of what a seed means.
var (
	valueFaults = []Fault{
		FaultMissingKey, FaultMisnamedKey, FaultNullOptional, FaultEmptyOptional, FaultNumberAsText, FaultBoolAsText, FaultArrayAsText,
		FaultObjectAsText, FaultScalarForArray, FaultWrongEnum, FaultFractionForInteger, FaultUndeclaredKey,
	}
	textFaults = []Fault{
		FaultDuplicateKey, FaultTruncated, FaultUnterminated, FaultPythonDict, FaultComment, FaultTrailingComma, FaultArithmetic, FaultBareWord,
		FaultTwoObjects, FaultEmptyArguments, FaultNullArguments, FaultNotObject, FaultDeepNesting, FaultHugeExponent, FaultInvalidUTF8,
	}
	nameFaults   = []Fault{FaultInventedName, FaultControlToken, FaultPrefixedName, FaultNameCase}
	idFaults     = []Fault{FaultMissingID, FaultBlankID, FaultDuplicateID, FaultReusedID}
	answerFaults = []Fault{FaultTransient, FaultNoResponse, FaultTextAnswer, FaultRefusal, FaultLostSibling, FaultRepeatedCall}
)

func knownFaults() map[Fault]bool {
	known := make(map[Fault]bool, 64)
	for _, list := range [][]Fault{valueFaults, textFaults, nameFaults, idFaults, answerFaults} {
		for _, f := range list {
			known[f] = true
		}
	}
	return known
}

// defaultRates keeps the order of what was recorded: of 161,216 calls, wrong
// values in 1.3 %, unknown names in 1.2 %, text that is not JSON in 1.1 %;
// within these, the kinds as often as each was counted. Each is raised 5 to 50
// times, the rare ones most, so that some thousand calls show every kind.
var defaultRates = map[Fault]float64{
	FaultUndeclaredKey: 0.05, FaultMissingKey: 0.04, FaultNullOptional: 0.04, FaultMisnamedKey: 0.03, FaultWrongEnum: 0.03,
	FaultEmptyOptional: 0.03, FaultScalarForArray: 0.03, FaultFractionForInteger: 0.02, FaultBoolAsText: 0.02, FaultArrayAsText: 0.02,
	FaultNumberAsText: 0.01, FaultObjectAsText: 0.01,

	FaultPythonDict: 0.02, FaultUnterminated: 0.01, FaultTruncated: 0.01, FaultArithmetic: 0.01, FaultEmptyArguments: 0.01,
	FaultBareWord: 0.01, FaultDuplicateKey: 0.005, FaultComment: 0.005, FaultTrailingComma: 0.005, FaultTwoObjects: 0.005,
	FaultNullArguments: 0.005, FaultNotObject: 0.005, FaultInvalidUTF8: 0.005, FaultHugeExponent: 0.005, FaultDeepNesting: 0.002,

	FaultControlToken: 0.02, FaultInventedName: 0.02, FaultNameCase: 0.01, FaultPrefixedName: 0.005,
	FaultMissingID: 0.03, FaultReusedID: 0.01, FaultDuplicateID: 0.005, FaultBlankID: 0.005,

	FaultRepeatedCall: 0.02, FaultLostSibling: 0.2, FaultTextAnswer: 0.02, FaultTransient: 0.02, FaultRefusal: 0.01, FaultNoResponse: 0.005,
}

// DefaultRates returns how often each fault comes unless FaultOptions.Rates
// says otherwise: a share of the calls, or of the answers, that have room for
// it. Every fault is in it. The map is the caller's.
func DefaultRates() map[Fault]float64 { return maps.Clone(defaultRates) }
