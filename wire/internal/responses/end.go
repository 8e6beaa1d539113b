package responses

// EndsWith is part of codec.Cursor's Ended.
func (Format) EndsWith(name, _ string) bool {
	return name == "response.completed" || name == "response.failed" || name == "response.incomplete"
}
