// Package home has a type whose name another package has too.
package home

// Addr is where somebody lives.
type Addr struct {
	Street string `json:"street"`
}
