package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/toolmend/toolmend/agentloop"
)

// searcher answers a query in a sentence or two, "" if it finds nothing.
type searcher func(ctx context.Context, query string) (string, error)

type searchArgs struct {
	Query string `json:"query" jsonschema:"minLength=1,maxLength=400"`
}

const maxFound = 2000 // bytes of a result that the model is shown

func searchTool(search searcher) agentloop.Tool {
	tool := agentloop.NewTool("search", "Looks up facts.",
		func(ctx context.Context, args searchArgs) (agentloop.Result, error) {
			found, err := search(ctx, args.Query)
			if err != nil {
				return agentloop.Result{}, err
			}
			if len(found) > maxFound {
				found = strings.ToValidUTF8(found[:maxFound], "") + " …"
			}
			return agentloop.Text(cmp.Or(found, "Nothing was found.")), nil
		})
	tool.Timeout = 10 * time.Second
	return tool
}

// web searches by an HTTP service with the answers of SerpAPI
// (serpapi.com/search-api). The key is part of the address, so no error may
// hold that.
func web(client *http.Client, address, key string) searcher {
	return func(ctx context.Context, query string) (string, error) {
		address := address + "?" + url.Values{"q": {query}, "api_key": {key}}.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", errors.New("the search service has no valid address")
		}
		resp, err := client.Do(req)
		if err != nil {
			var withAddress *url.Error
			if errors.As(err, &withAddress) {
				err = withAddress.Err
			}
			return "", fmt.Errorf("the search service cannot be reached: %w", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("the search service answers %s", resp.Status)
		}
		var page struct {
			AnswerBox struct{ Answer, Snippet string } `json:"answer_box"`
			Organic   []struct{ Snippet string }       `json:"organic_results"`
		}
		if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&page); err != nil {
			return "", fmt.Errorf("the search service does not answer in JSON: %w", err)
		}
		found := cmp.Or(page.AnswerBox.Answer, page.AnswerBox.Snippet)
		if found == "" && len(page.Organic) > 0 {
			found = page.Organic[0].Snippet
		}
		return found, nil
	}
}

// facts are what the offline index knows.
var facts = []string{
	"Galdhøpiggen is the highest mountain of Norway, 2,469 metres high.",
	"Snøhetta is a mountain in Norway, 2,286 metres high.",
	"Mont Blanc is the highest mountain of the Alps, 4,806 metres high.",
	"The Sognefjord is the longest fjord of Norway, 205 kilometres long.",
	"The Rhine is a river in Europe, 1,230 kilometres long.",
}

// offline returns the fact that shares the most words with the query.
func offline(_ context.Context, query string) (string, error) {
	best, found := 0, ""
	for _, fact := range facts {
		n := 0
		for word := range words(query) {
			if words(fact)[word] {
				n++
			}
		}
		if n > best {
			best, found = n, fact
		}
	}
	return found, nil
}

// words returns the words of a text that say what it is about.
func words(text string) map[string]bool {
	about := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch word {
		case "a", "of", "in", "is", "the", "what", "how", "high", "long":
		default:
			about[word] = true
		}
	}
	return about
}
