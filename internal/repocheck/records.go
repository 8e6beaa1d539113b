package repocheck

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Changelog checks that the first section of CHANGELOG.md is Unreleased.
func Changelog(t Tree) ([]Problem, error) {
	const file = "CHANGELOG.md"
	if !slices.Contains(t.Files, file) {
		return []Problem{{file, 0, "is missing"}}, nil
	}
	b, err := t.read(file)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(b), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if strings.Trim(heading, "[] ") == "Unreleased" {
				return nil, nil
			}
			return []Problem{{file, i + 1, "the first section is not [Unreleased]"}}, nil
		}
	}
	return []Problem{{file, 0, "has no [Unreleased] section"}}, nil
}

// decisionName is the form of a decision note's file name.
var decisionName = regexp.MustCompile(`^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// Decisions checks that the files of docs/decisions are NNNN-title.md and
// numbered from 0001 without gaps or doubles.
func Decisions(t Tree) ([]Problem, error) {
	var problems []Problem
	next := 1
	for _, file := range t.Files {
		if path.Dir(file) != "docs/decisions" {
			continue
		}
		m := decisionName.FindStringSubmatch(path.Base(file))
		if m == nil {
			problems = append(problems, Problem{file, 0, "is not named NNNN-title.md"})
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if n != next {
			problems = append(problems, Problem{file, 0, fmt.Sprintf("has number %04d where %04d is next", n, next)})
		}
		next = n + 1
	}
	return problems, nil
}
