package chat

import (
	"encoding/base64"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// freshItem writes p as an element of a content list, from its neutral fields.
func freshItem(p middleware.Part) (string, error) {
	switch p.Kind {
	case middleware.PartText:
		return `{"type":"text","text":` + rawjson.Quote(p.Text) + `}`, nil
	case middleware.PartMedia:
		return freshMedia(p)
	}
	return "", codec.Unencodablef("a part of kind %q that is not of this format", p.Kind)
}

// freshMedia writes images by address or data, sound as data, videos as most
// compatible servers want them, and any other data as a file.
func freshMedia(p middleware.Part) (string, error) {
	url := p.URL
	if len(p.Data) > 0 {
		url = codec.DataURL(p)
	}
	family, _, _ := strings.Cut(p.MediaType, "/")
	switch {
	case url == "" || len(p.Data) > 0 && p.MediaType == "":
	case family == "image" || family == "":
		return `{"type":"image_url","image_url":{"url":` + rawjson.Quote(url) + `}}`, nil
	case family == "video":
		return `{"type":"video_url","video_url":{"url":` + rawjson.Quote(url) + `}}`, nil
	case family == "audio" && len(p.Data) > 0:
		return `{"type":"input_audio","input_audio":{"data":` + base64JSON(p.Data) +
			`,"format":` + rawjson.Quote(audioFormat(p.MediaType)) + `}}`, nil
	case len(p.Data) > 0:
		return `{"type":"file","file":{"filename":` + rawjson.Quote(fileName(p.MediaType)) +
			`,"file_data":` + rawjson.Quote(url) + `}}`, nil
	}
	return "", codec.Unencodablef("media of this type and form")
}

// fileName is for OpenAI, which wants a name beside the data of a file.
func fileName(mediaType string) string {
	_, sub, _ := strings.Cut(mediaType, "/")
	if sub == "" || strings.ContainsAny(sub, ".+;") {
		return "file"
	}
	return "file." + sub
}

func base64JSON(data []byte) string { return `"` + base64.StdEncoding.EncodeToString(data) + `"` }

// audioTypes are the formats whose media type has another name.
var audioTypes = map[string]string{"mp3": "audio/mpeg"}

func audioType(format string) string {
	if t, ok := audioTypes[format]; ok {
		return t
	}
	return "audio/" + format
}

// audioFormat returns what OpenAI calls a type of sound.
func audioFormat(mediaType string) string {
	switch _, sub, _ := strings.Cut(mediaType, "/"); sub {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return sub
	}
}
