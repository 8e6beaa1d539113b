package report_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/report"
)

func TestEmptyHTML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report.WriteHTML(&b, report.NewFigures(report.Options{}).Summary(), report.Layout{}))
	require.Contains(t, b.String(), "0 calls")
}
