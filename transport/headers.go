package transport

// Headers, and trailers of streams, that this package writes. Those of an
// upstream are taken away.
const (
	errorHeader  = "X-Toolmend-Error"  // the code of an error of the chain
	statusHeader = "X-Toolmend-Status" // what is known about the calls of an answer

	unchecked = "unchecked" // a value of statusHeader
)
