package ollama

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readSettings reads the model and the options into r:
//
//	"model": "llama3.1", "options": {"temperature": 0.5, "num_predict": 64, "stop": ["END"]}
//
// A tool choice has no place in this format.
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

// settings projects the model, which comes first, and the options. EncodeRequest
// sets those in which the projection of the request differs from that of what was
// read, so that 0.50 stays 0.50, and no bound of -1 becomes 0.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Text("model", r.Model),
		lens.Float("options/temperature", r.Temperature),
		lens.Count("options/num_predict", int64(r.MaxTokens)),
		lens.Words("options/stop", r.Stop),
	}
}
