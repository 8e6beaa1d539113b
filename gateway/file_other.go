//go:build !unix

package gateway

const (
	noFollow         = 0
	readableByOthers = false
)
