package embed

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// minSecret is the length from which the values of headers and of the URL's query count as secrets.
// Shorter ones are versions and switches, and are found inside ordinary words.
const minSecret = 8

// redact removes every secret of the endpoint from a text that is going to be shown.
func (e *Endpoint) redact(text string) string {
	if e.secrets == nil {
		return text
	}
	return e.secrets.ReplaceAllLiteralString(text, "[redacted]")
}

// secretsOf matches what must never be shown, in every form in which a server may echo it; it is nil
// where there is no secret.
func secretsOf(o EndpointOptions, base *url.URL) *regexp.Regexp {
	found := []string{o.APIKey}
	if base.User != nil {
		password, _ := base.User.Password()
		found = append(found, password)
	}
	for _, value := range o.Headers {
		for _, part := range append(strings.Fields(value), value) { // "Bearer x" may come back as "x"
			if len(part) >= minSecret {
				found = append(found, part)
			}
		}
	}
	for _, values := range base.Query() {
		for _, value := range values {
			if len(value) >= minSecret {
				found = append(found, value)
			}
		}
	}
	var forms []string
	for _, s := range found {
		if s = strings.ToValidUTF8(s, ""); s != "" {
			quoted, _ := json.Marshal(s) // of a string: cannot fail
			forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), strings.Trim(string(quoted), `"`))
		}
	}
	if len(forms) == 0 {
		return nil
	}
	// Longer ones first, since a secret may be a part of another one.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	forms = slices.Compact(forms)
	for i, s := range forms {
		forms[i] = escapedAnyHow(s)
	}
	return regexp.MustCompile(strings.Join(forms, "|"))
}

// escapedAnyHow matches s with backslashes before its characters, as they come about where a quoted
// text is quoted again.
func escapedAnyHow(s string) string {
	var pattern strings.Builder
	for _, r := range s {
		pattern.WriteString(`\\*`)
		pattern.WriteString(regexp.QuoteMeta(string(r)))
	}
	return pattern.String()
}
