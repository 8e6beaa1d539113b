package schema

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// distinct charges for uniqueItems. Up to 20 elements v5 compares all pairs,
// else those of equal hashes; its hash does not see brackets, so that elements
// which differ can all have the same one: [[1],2] and [[1,2]], for example. Each
// element is charged for the elements before it with the same hash.
func (m *meter) distinct(v []any) bool {
	const pairwise = 20
	if len(v) <= pairwise {
		n := 0
		for _, e := range v {
			n += size(e)
		}
		return m.spend(5 * n * len(v))
	}
	seen := make(map[uint64]int, len(v))
	for _, e := range v {
		var h maphash.Hash
		h.SetSeed(m.seed)
		n := flatten(&h, e)
		sum := h.Sum64()
		if !m.spend(n * (8 + 10*min(seen[sum], budget))) {
			return false
		}
		seen[sum]++
	}
	return true
}

// flatten writes what v5's hash sees, and returns the count of values.
func flatten(h *maphash.Hash, v any) int {
	n := 1
	switch v := v.(type) {
	case nil:
		_ = h.WriteByte(0)
	case bool:
		_, _ = h.Write([]byte{1, map[bool]byte{true: 1}[v]})
	case string:
		_ = h.WriteByte(3)
		_, _ = h.WriteString(v)
		n += len(v) / 100
	case json.Number:
		_ = h.WriteByte(2)
		n += flattenNumber(h, v)
	case []any:
		_ = h.WriteByte(4)
		for _, e := range v {
			n += flatten(h, e)
		}
	case map[string]any:
		_ = h.WriteByte(5)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			n += flatten(h, k) + flatten(h, v[k])
		}
	}
	return n
}

// flattenNumber writes what v5's hash sees of a number, which does not depend on how it
// is written: 1, 1.0 and 1e0 have one hash. One that is too large to be written out
// costs the budget.
func flattenNumber(h *maphash.Hash, v json.Number) int {
	if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil && i > math.MinInt64 {
		_, _ = h.Write(new(big.Int).SetInt64(i).Bytes())
		_ = h.WriteByte(1)
		return 0
	}
	const most = 20_000
	if exponent(v) > most || len(v) > most {
		return budget
	}
	if r, ok := new(big.Rat).SetString(v.String()); ok {
		_, _ = h.Write(r.Num().Bytes())
		_, _ = h.Write(r.Denom().Bytes())
	}
	return (len(v) + exponent(v)) / 10
}
