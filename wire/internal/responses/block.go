package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// sealedPart gives p its Native.
func sealedPart(p middleware.Part, raw string, h *part) middleware.Part {
	h.was, h.sum = p, sumOf(p.Data)
	h.was.Data = nil
	p.Native = native(raw, h)
	return p
}

// readContent reads the content of a message: a text or a list of blocks. A
// message without any is one opaque part, so that it is not lost.
func readContent(v rawjson.Value) ([]middleware.Part, error) {
	content := v.Get("content")
	if content.Kind() == rawjson.String {
		block := "input_text"
		if v.Get("role").Str() == "assistant" {
			block = "output_text"
		}
		return []middleware.Part{readBare(content, block)}, nil
	}
	blocks, err := list(content, "the content of a message")
	if err != nil {
		return nil, err
	}
	if blocks.Empty() || !blocks.Exists() {
		return []middleware.Part{readOpaque(v, true)}, nil
	}
	return readBlocks(blocks)
}

func readBlocks(v rawjson.Value) ([]middleware.Part, error) {
	var parts []middleware.Part
	for b := range v.Each() {
		p, err := readBlock(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// readBare reads a text that stands in the place of a list of blocks.
func readBare(v rawjson.Value, block string) middleware.Part {
	p := middleware.Part{Text: v.Str()}
	return sealedPart(p, `{"type":"`+block+`","text":`+v.Raw()+`}`, &part{val: v, text: v})
}

func readOpaque(v rawjson.Value, item bool) middleware.Part {
	return sealedPart(middleware.Part{Kind: middleware.PartOpaque}, v.Raw(), &part{val: v, item: item})
}

// isBlock reports whether an object of that type is a block of a message, not
// an item.
func isBlock(typ string) bool {
	return textMember(typ) != "" || strings.HasPrefix(typ, "input_") || strings.HasPrefix(typ, "output_")
}

// textMember names the member that holds a block's text.
func textMember(typ string) string {
	switch typ {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return "text"
	case "refusal":
		return "refusal"
	}
	return ""
}

func readBlock(v rawjson.Value) (middleware.Part, error) {
	if v.Kind() != rawjson.Object {
		return middleware.Part{}, codec.Shapef("%s where a block should be", v.Kind())
	}
	typ := v.Get("type").Str()
	if key := textMember(typ); key != "" {
		h := &part{val: v, text: v.Get(key)}
		text, err := textOf(h.text, "text")
		return sealedPart(middleware.Part{Text: text}, v.Raw(), h), err
	}
	if p, _ := readMedia(v, typ); p.URL != "" || p.Data != nil {
		return sealedPart(p, v.Raw(), &part{val: v}), nil
	}
	return readOpaque(v, false), nil
}

// readMedia reads an image or a file, and names the member that holds it.
// Neither URL nor Data: it is known only to the provider.
func readMedia(v rawjson.Value, typ string) (middleware.Part, string) {
	keys := map[string][]string{"input_image": {"image_url"}, "input_file": {"file_data", "file_url"}}[typ]
	for _, key := range keys {
		url := v.Get(key).Str()
		if url == "" {
			continue
		}
		p := middleware.Part{Kind: middleware.PartMedia, URL: url}
		if typ == "input_file" {
			p.MediaType = fileType(url)
		}
		if media, data, ok := codec.FromDataURL(url); ok {
			p.URL, p.MediaType, p.Data = "", media, data
		}
		return p, key
	}
	return middleware.Part{}, ""
}

// fileType guesses what a file is that has only an address: not an image.
func fileType(url string) string {
	if strings.HasSuffix(url, ".pdf") {
		return "application/pdf"
	}
	return "application/octet-stream"
}

// mediaURL is the URL of a part: its own, or one that holds its data.
func mediaURL(p middleware.Part) string {
	if len(p.Data) == 0 {
		return p.URL
	}
	return codec.DataURL(p)
}

// freshMedia returns a media part as a block.
func freshMedia(p middleware.Part) (string, error) {
	url := mediaURL(p)
	switch {
	case url == "" || len(p.Data) > 0 && p.MediaType == "":
		return "", codec.Unencodablef("a media part without a place or a type")
	case strings.HasPrefix(p.MediaType, "image/"), p.MediaType == "":
		return codec.Object(codec.Member{Key: "type", Raw: `"input_image"`}, codec.Member{Key: "image_url", Raw: rawjson.Quote(url)}), nil
	case len(p.Data) == 0:
		return codec.Object(codec.Member{Key: "type", Raw: `"input_file"`}, codec.Member{Key: "file_url", Raw: rawjson.Quote(url)}), nil
	}
	_, ext, _ := strings.Cut(p.MediaType, "/") // a file without a name is refused
	return codec.Object(codec.Member{Key: "type", Raw: `"input_file"`}, codec.Member{Key: "filename", Raw: rawjson.Quote("file." + ext)},
		codec.Member{Key: "file_data", Raw: rawjson.Quote(url)}), nil
}
