package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// format names a parser; it is what Document.Format says.
type format string

const (
	formatMarkdown format = "markdown"
	formatHTML     format = "html"
	formatText     format = "text"
	formatJSONL    format = "jsonl"
)

// byExtension is consulted for content that is text.
var byExtension = map[string]format{
	".md": formatMarkdown, ".markdown": formatMarkdown, ".mdx": formatMarkdown, ".mdown": formatMarkdown,
	".html": formatHTML, ".htm": formatHTML, ".xhtml": formatHTML,
	".txt": formatText, ".text": formatText, ".log": formatText, ".rst": formatText, ".adoc": formatText, ".asciidoc": formatText,
	".jsonl": formatJSONL, ".ndjson": formatJSONL,
}

// structured are extensions of text that means nothing to a reader as it stands.
var structured = map[string]string{
	".json": "JSON", ".csv": "CSV", ".tsv": "tab-separated values", ".xml": "XML", ".rss": "RSS", ".atom": "Atom",
	".ipynb": "a Jupyter notebook", ".eml": "an e-mail message", ".mbox": "a mailbox", ".rtf": "RTF",
}

// assets are extensions of text that pages are made with and that is no document.
var assets = map[string]string{
	".svg": "an SVG image", ".css": "a style sheet", ".js": "JavaScript", ".mjs": "JavaScript", ".map": "a source map",
}

// printable are formats that are written in printable characters, so that finding nothing but text
// does not speak against them.
var printable = []string{"application/pdf", "application/postscript", "text/rtf"}

// detect tells the format by content first and by name second. head is the beginning of the source,
// all of it when it is shorter than headSize.
func detect(name string, head []byte) (format, *skipError) {
	text := headText(head)
	if len(head) < headSize && strings.TrimSpace(text) == "" {
		return "", skipf(SkipEmpty, "the file is empty")
	}
	mime := mimetype.Detect(head)
	isText := looksLikeText(head)
	switch {
	case slices.ContainsFunc(printable, mime.Is):
		return "", unsupported(mime.String(), mime.Extension())
	case !isText && isMedia(mime):
		return "", asset(mime.String(), mime.Extension())
	case !isText && !isTextType(mime) && !mime.Is("application/octet-stream"):
		return "", unsupported(mime.String(), mime.Extension())
	case !isText:
		return "", skipf(SkipBinary, "binary data of no known format: exclude it")
	}
	ext := strings.ToLower(path.Ext(name))
	f, known := byExtension[ext]
	switch {
	case f == formatJSONL || looksLikeRecords(text):
		return formatJSONL, nil
	case looksLikeHTML(text):
		return formatHTML, nil
	case known:
		return f, nil
	case assets[ext] != "":
		return "", asset(assets[ext], ext)
	case structured[ext] != "":
		return "", unsupported(structured[ext], ext)
	case xmlStart.MatchString(text[:min(len(text), 8<<10)]):
		return "", unsupported("XML", ext)
	case mime.Is("application/json"):
		return "", unsupported("JSON", ext)
	case ext == "" && looksLikeMarkdown(text):
		return formatMarkdown, nil
	}
	return formatText, nil
}

// recognised are the names that people have for the formats they meet most.
var recognised = map[string]string{
	".pdf": "a PDF document", ".docx": "a Word document", ".doc": "a Word document", ".xlsx": "an Excel workbook",
	".xls": "an Excel workbook", ".pptx": "a PowerPoint presentation", ".ppt": "a PowerPoint presentation",
	".epub": "an EPUB book", ".msg": "an Outlook message", ".zip": "a ZIP archive", ".gz": "a gzip archive", ".tar": "a tar archive",
	".odt": "an OpenDocument text", ".png": "a PNG image", ".jpg": "a JPEG image", ".gif": "a GIF image",
}

func unsupported(what, ext string) *skipError {
	return skipf(SkipUnsupported, "recognised as %s, which is not a supported format: convert it to Markdown, HTML or text", named(what, ext))
}

func asset(what, ext string) *skipError {
	return skipf(SkipAsset, "recognised as %s, which is no document", named(what, ext))
}

// named is a format as people know it, with its extension.
func named(what, ext string) string {
	if name, ok := recognised[ext]; ok {
		what = name
	}
	if ext != "" && !strings.Contains(what, "(") {
		what = fmt.Sprintf("%s (%s)", what, ext)
	}
	return what
}

func isMedia(m *mimetype.MIME) bool {
	kind, _, _ := strings.Cut(m.String(), "/")
	return kind == "image" || kind == "audio" || kind == "video" || kind == "font"
}

// headText is the head without its encoding, as far as an encoding with wide units hides ASCII.
func headText(head []byte) string {
	if w, rest := wideEncoding(head); w != nil {
		text, _ := w.decode(rest)
		return text
	}
	return string(bytes.TrimPrefix(head, bomUTF8))
}

func isTextType(m *mimetype.MIME) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return true
		}
	}
	return false
}

// looksLikeText reports whether the bytes are text in some encoding: few control characters, once
// the wide encodings are undone. Every legacy encoding leaves those alone.
func looksLikeText(head []byte) bool {
	if w, _ := wideEncoding(head); w != nil {
		return true
	}
	controls := 0
	for _, b := range head {
		switch {
		case b >= ' ' && b != 0x7f:
		case b >= '\b' && b <= '\r', b == 0x1b, b == 0x1a: // white space, ISO-2022 escapes, the end mark of old systems
		default:
			controls++
		}
	}
	// A stray NUL or two do not make a log binary.
	return controls <= 2 && controls*4 <= len(head) || controls*50 <= len(head)
}

var htmlStart = regexp.MustCompile(`(?is)^(\s|<!--.*?-->|<\?xml.*?\?>)*<(!doctype\s+html|html[\s>])`)

// xmlStart is a declaration, or a first element with a name space.
var xmlStart = regexp.MustCompile(`(?s)^(\s|<!--.*?-->)*<(\?xml\s|[A-Za-z][\w:.-]*\s[^<>]*xmlns(:\w+)?=)`)

// looksLikeHTML demands a whole page, since a Markdown file may well begin with a tag.
func looksLikeHTML(text string) bool {
	return htmlStart.MatchString(text[:min(len(text), 8<<10)])
}

// looksLikeRecords reports whether the first line is a JSON object of the layout of BEIR.
func looksLikeRecords(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(text, "{") {
		return false
	}
	line, _, whole := strings.Cut(text, "\n")
	dec := json.NewDecoder(strings.NewReader(line))
	var id, body bool
	depth, key := 0, true // key: at depth 1 the next string is one
	for {
		token, err := dec.Token()
		if err != nil {
			// A line longer than the head is cut, which speaks neither way.
			return !whole && id && body && len(text) > headSize/2
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else if depth--; depth == 0 {
				return id && body
			}
			key = depth == 1 && (t == '}' || t == ']' || t == '{')
		default:
			if s, ok := t.(string); ok && depth == 1 && key {
				id = id || s == "_id" || s == "id"
				body = body || s == "text"
			}
			key = depth == 1 && !key
		}
	}
}

var atxStart = regexp.MustCompile(`^\s*#{1,6} \S`)

// looksLikeMarkdown is asked for sources without an extension, such as README or a stream.
func looksLikeMarkdown(text string) bool {
	if atxStart.MatchString(text) {
		return true
	}
	_, _, kind := cutFrontMatter(normaliseLineEndings(text))
	return kind != ""
}
