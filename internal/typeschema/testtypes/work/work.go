// Package work has a type whose name another package has too.
package work

// Addr is where somebody works.
type Addr struct {
	Floor int8 `json:"floor"`
}
