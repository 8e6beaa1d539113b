package ollama

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readSettings reads the model and the options into r.
func readSettings(root rawjson.Value, r *middleware.Request) (err error) {
	if r.Model, err = on.Text(root, "model"); err != nil {
		return err
	}
	options, err := on.Kind(root, "options", rawjson.Object)
	if err != nil {
		return err
	}
	for _, name := range []string{"temperature", "num_predict"} {
		if _, err := on.Kind(options, name, rawjson.Number); err != nil {
			return err
		}
	}
	r.Temperature = codec.Float(on.Get(options, "temperature"))
	r.MaxTokens = int(max(0, codec.Int(on.Get(options, "num_predict")))) // -1 and -2 are no bound
	r.Stop, err = on.Texts(options, "stop")
	return err
}

// settings projects the model, which comes first, and the options.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Text("model", r.Model),
		lens.Float("options/temperature", r.Temperature),
		lens.Count("options/num_predict", int64(r.MaxTokens)),
		lens.Words("options/stop", r.Stop),
	}
}
