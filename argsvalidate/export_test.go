package argsvalidate

// Footprint returns the estimate for a schema.
func (v *Validator) Footprint(raw []byte) int {
	_, bytes := v.compile(raw)
	return bytes
}
