package anthropic

// EndsWith is part of codec.Cursor's Ended.
func (Format) EndsWith(name, _ string) bool { return name == "message_stop" }
