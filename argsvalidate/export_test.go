package argsvalidate

// Footprint returns the estimate for a schema.
func (v *Validator) Footprint(raw []byte) int {
	_, bytes := v.compile(raw)
	return bytes
}

// WithoutScan makes v validate all calls in the long way, and returns it.
func (v *Validator) WithoutScan() *Validator {
	v.noScan = true
	return v
}
