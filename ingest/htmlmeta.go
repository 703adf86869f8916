package ingest

import (
	"slices"
	"strings"

	"assay"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// technical are meta names, or beginnings of them, that say nothing about the content.
var technical = []string{"viewport", "generator", "robots", "googlebot", "theme-color", "color-scheme", "format-detection",
	"referrer", "csrf", "msapplication-", "apple-", "mobile-web-", "google-", "msvalidate", "yandex", "twitter:", "fb:",
	"og:image", "og:url", "og:site_name", "og:type", "og:locale", "og:title", "handheldfriendly", "mobileoptimized", "next-head-count", "application-name"}

// metaAliases are the many names of the same field.
var metaAliases = map[string]string{
	"article:modified_time": "modified", "og:updated_time": "modified", "last-modified": "modified", "dcterms.modified": "modified",
	"dc.date": "date", "dcterms.date": "date", "article:published_time": "date", "pubdate": "date", "docsearch:version": "version",
	"docsearch:language": "language", "dc.language": "language", "dc.title": "title", "og:description": "description",
	"dc.description": "description", "dc.creator": "author", "article:author": "author", "article:tag": "tags",
}

// pageMetadata reads the head of a page: title, language, canonical address and the meta elements
// that say something about the content.
func pageMetadata(page *html.Node) assay.Metadata {
	meta := assay.Metadata{}
	var title, lang string
	for n := range page.Descendants() {
		if n.Type != html.ElementNode || n.Namespace != "" { // an SVG has titles too
			continue
		}
		switch n.DataAtom {
		case atom.Html:
			lang = attr(n, "lang")
			if lang == "" {
				lang = attr(n, "xml:lang")
			}
		case atom.Title:
			if title == "" {
				title = oneLine(textOf(n))
			}
		case atom.Meta:
			addMeta(meta, n)
		case atom.Link:
			if href := attr(n, "href"); strings.EqualFold(attr(n, "rel"), "canonical") && href != "" {
				meta["canonical"] = []string{href}
			}
		}
	}
	if title != "" {
		meta["title"] = []string{title}
	}
	if lang != "" && len(meta["language"]) == 0 && len(meta["lang"]) == 0 {
		meta["language"] = []string{lang}
	}
	return meta
}

// maxMetaValue bounds one value: descriptions are short, embedded data is not a field.
const maxMetaValue = 4 << 10

func addMeta(meta assay.Metadata, n *html.Node) {
	name := strings.ToLower(attr(n, "name"))
	if name == "" {
		name = strings.ToLower(attr(n, "property"))
	}
	if name == "" && strings.EqualFold(attr(n, "http-equiv"), "content-language") {
		name = "language"
	}
	value := strings.Join(strings.Fields(attr(n, "content")), " ")
	if name == "" || value == "" || len(value) > maxMetaValue ||
		slices.ContainsFunc(technical, func(t string) bool { return strings.HasPrefix(name, t) }) {
		return
	}
	if alias, ok := metaAliases[name]; ok {
		if name = alias; len(meta[name]) > 0 && name != "tags" {
			return // the plain name counts
		}
	}
	switch name {
	case "keywords", "tags":
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word != "" && !slices.Contains(meta[name], word) {
				meta[name] = append(meta[name], word)
			}
		}
	default:
		if len(meta[name]) == 0 {
			meta[name] = []string{value}
		}
	}
}
