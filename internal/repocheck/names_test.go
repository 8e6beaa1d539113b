package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode"
)

// riddles are words that say neither what a function returns nor what a type holds. They
// had several meanings each in one project.
var riddles = map[string]bool{"given": true, "behind": true, "stands": true, "says": true, "lacks": true, "fate": true}

// names finds types, functions, methods, fields and package variables whose name has one of
// the riddles as a word, and types that are named step: a step is a model step, and each
// middleware has a type of its own for it, such as retryStep.
func names(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.having(".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, all.read(t, file), parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler reports it
		}
		report := func(id *ast.Ident, isType bool) {
			for _, word := range wordsOf(id.Name) {
				if riddles[word] {
					problems = append(problems, problem(file, set.Position(id.Pos()).Line, "the name %s has the word %s: name what it returns or does", id.Name, word))
				}
			}
			if isType && id.Name == "step" {
				problems = append(problems, problem(file, set.Position(id.Pos()).Line, "a type is named step: name whose step it is"))
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				report(n.Name, false)
			case *ast.TypeSpec:
				report(n.Name, true)
			case *ast.StructType:
				for _, f := range n.Fields.List {
					for _, id := range f.Names {
						report(id, false)
					}
				}
			case *ast.InterfaceType:
				for _, f := range n.Methods.List {
					for _, id := range f.Names {
						report(id, false)
					}
				}
			}
			return true
		})
		for _, d := range parsed.Decls {
			if values, ok := d.(*ast.GenDecl); ok {
				for _, s := range values.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, id := range v.Names {
							report(id, false)
						}
					}
				}
			}
		}
	}
	return problems
}

// wordsOf splits a name in camel case into its words, in lower case.
func wordsOf(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		if i > start && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, start = append(words, strings.ToLower(name[start:i])), i
		}
	}
	return append(words, strings.ToLower(name[start:]))
}
