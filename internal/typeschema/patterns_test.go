package typeschema

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The pattern of a range takes its numbers, and no others.
func TestIntegerText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		edge := rapid.OneOf(rapid.Int64Range(0, 1100), rapid.Int64Min(0))
		lo, hi := -edge.Draw(t, "lo"), edge.Draw(t, "hi")
		p := integerText(big.NewRat(lo, 1), big.NewRat(hi, 1))
		for _, n := range []int64{lo, lo + 1, hi, hi - 1, rapid.Int64().Draw(t, "n"), rapid.Int64Range(-1200, 1200).Draw(t, "m")} {
			require.Equal(t, lo <= n && n <= hi, p.MatchString(strconv.FormatInt(n, 10)), "%d in %s", n, p)
		}
		for _, edge := range []*big.Int{big.NewInt(lo - 1), new(big.Int).Add(big.NewInt(hi), big.NewInt(1))} {
			require.False(t, p.MatchString(edge.String()), "%d in %s", edge, p)
		}
		for _, s := range []string{"", "-", "-0", "+1", "01", "1.0", "1e0", " 1", "1\n"} {
			require.False(t, p.MatchString(s), s)
		}
	})
	require.True(t, integerText(nil, nil).MatchString("-123456789012345678901234567890"))
}

// The patterns take what the standard library writes.
func TestPatternsTakeWhatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		require.Regexp(t, base64Text, base64.StdEncoding.EncodeToString(b))

		four := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ipv4")))
		six := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 255}), 16, 16).Draw(t, "ipv6")))
		for _, s := range []string{four.String(), six.String(), six.StringExpanded(), "::ffff:" + four.String(), "64:ff9b::" + four.String()} {
			require.Regexp(t, address, s)
		}

		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "minutes"))
		at := time.Unix(rapid.Int64Range(-62135510400, 253402214400).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone)
		require.Regexp(t, dateTime, at.Format(time.RFC3339Nano))

		f, err := json.Marshal(rapid.Float64Range(-1e99, 1e99).Draw(t, "float"))
		require.NoError(t, err)
		require.Regexp(t, floatText[64], string(f))
	})
}
