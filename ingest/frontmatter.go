package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"assay"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// maxFrontMatter bounds front matter: past it a leading --- is a line across the page.
const maxFrontMatter = 64 << 10

// maxYAMLNodes bounds what aliases can multiply.
const maxYAMLNodes = 10_000

// frontMatter splits the fields from the text. Where they can't be read the text is whole and the
// error says why.
func frontMatter(text string) (meta assay.Metadata, body string, err error) {
	block, rest, kind := cutFrontMatter(text)
	var raw map[string]any
	switch kind {
	case "---":
		raw, err = parseYAML(block)
	case "+++":
		raw, err = parseTOML(block)
	default:
		return nil, text, nil
	}
	if err != nil {
		return nil, text, err
	}
	if raw == nil && strings.TrimSpace(block) != "" {
		return nil, text, nil // two lines across the page with something between them
	}
	return assay.MetadataFrom(raw), rest, nil
}

// cutFrontMatter finds the fences; kind is empty where there are none.
func cutFrontMatter(text string) (block, rest, kind string) {
	for _, fence := range []string{"---", "+++"} {
		first, after, ok := strings.Cut(text, "\n")
		if !ok || strings.TrimRight(first, " \t") != fence {
			continue
		}
		for offset := 0; offset < len(after) && offset <= maxFrontMatter; {
			line, _, more := strings.Cut(after[offset:], "\n")
			next := min(offset+len(line)+1, len(after))
			if end := strings.TrimRight(line, " \t"); end == fence || fence == "---" && end == "..." {
				return after[:offset], after[next:], fence
			}
			if offset = next; !more {
				break
			}
		}
	}
	return "", "", ""
}

// parseYAML keeps the written form of every scalar: a version 1.10 is not 1.1, and a date has no
// time of day that nobody wrote. It returns nil for a block that is no mapping.
func parseYAML(block string) (map[string]any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(block), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil
	}
	budget := maxYAMLNodes
	value, err := yamlValue(doc.Content[0], &budget, 0)
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

func yamlValue(n *yaml.Node, budget *int, depth int) (any, error) {
	if *budget--; *budget < 0 || depth > 100 {
		return nil, fmt.Errorf("line %d: more than %d values or nested too deep", n.Line, maxYAMLNodes)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return yamlValue(n.Alias, budget, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := yamlValue(item, budget, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := yamlValue(n.Content[i+1], budget, depth+1)
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	}
	if n.Tag == "!!null" {
		return nil, nil
	}
	return n.Value, nil
}

func parseTOML(block string) (map[string]any, error) {
	raw := map[string]any{}
	if _, err := toml.Decode(block, &raw); err != nil {
		return nil, err
	}
	return tomlValue(raw).(map[string]any), nil
}

// tomlValue turns what the decoder makes of dates and lists of tables into what Metadata reads.
func tomlValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = tomlValue(item)
		}
	case []map[string]any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = tomlValue(item)
		}
		return list
	case []any:
		for i, item := range v {
			v[i] = tomlValue(item)
		}
	case time.Time:
		if h, m, s := v.Clock(); h+m+s == 0 {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339)
	}
	return v
}

// describe maps the fields that documents have in common; all of them stay in Metadata as well, in
// the form in which they were written.
func describe(doc *assay.Document, meta assay.Metadata) {
	if len(meta) == 0 {
		return
	}
	doc.Metadata = meta
	doc.Title = plainTitle(firstOf(meta, "title"))
	doc.Version = firstOf(meta, "version")
	doc.Language = firstOf(meta, "language", "lang")
	for _, field := range []string{"modified", "last_modified", "lastmod", "updated", "date"} {
		if t, err := parseDate(firstOf(meta, field)); err == nil {
			doc.Modified = t
			break
		}
	}
}

// firstOf finds a field in either case: "Title" is as common as "title".
func firstOf(meta assay.Metadata, fields ...string) string {
	for _, field := range fields {
		for _, key := range []string{field, strings.ToUpper(field[:1]) + field[1:]} {
			if v := strings.TrimSpace(meta.Get(key)); v != "" {
				return v
			}
		}
	}
	return ""
}

var dateLayouts = []string{
	time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05Z07:00", "2006/01/02", "January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006", time.RFC1123, time.RFC1123Z,
}

func parseDate(s string) (time.Time, error) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("not a date")
}
