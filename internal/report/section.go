package report

import "slices"

// Layout is what a writer shows besides the figures. The zero Layout shows no values
// that models wrote, except for names.
type Layout struct {
	Title    string    // "" means "Tool calls"
	Values   bool      // show arguments and messages
	Sections []Section // further parts, after the tables
	Advice   []string  // what would help most, for the first screen of the HTML report
	Final    bool      // the final verdicts decide what fails (JUnit), not those as sent
}

// Section is a further part of a report: some sentences, and a table if it has
// columns. Its texts may hold anything; writers escape them.
type Section struct {
	Title   string     `json:"title"`
	Text    []string   `json:"text,omitzero"` // paragraphs
	Caption string     `json:"caption,omitzero"`
	Columns []string   `json:"columns,omitzero"`
	Numbers []int      `json:"numbers,omitzero"` // indexes of the columns that hold numbers
	Rows    [][]string `json:"rows,omitzero"`
}

// Numeric reports whether column i holds numbers.
func (s Section) Numeric(i int) bool { return slices.Contains(s.Numbers, i) }
