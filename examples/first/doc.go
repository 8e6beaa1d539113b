// Command first is the program of the README: main.go is all of it.
package main
