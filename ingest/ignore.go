package ingest

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one line of an ignore file, or one Include or Exclude glob.
type pattern struct {
	glob    string // anchored at the folder that it belongs to
	negated bool
	dirOnly bool
}

// parsePattern reads a line with the semantics of .gitignore. In an ignore file braces are letters,
// as git has it; in an option they are doublestar's alternatives.
func parsePattern(line string, ignoreFile bool) (pattern, error) {
	var p pattern
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.negated, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly, line = true, rest
	}
	rest, anchored := strings.CutPrefix(line, "/")
	line = strings.TrimPrefix(rest, "./")
	switch {
	case line == "":
		return p, errors.New("an empty pattern")
	case !anchored && !strings.Contains(line, "/"):
		line = "**/" + line
	}
	// For git "dir/**" is what is in dir, and not dir itself.
	if strings.HasSuffix(line, "/**") {
		line += "/*"
	}
	if ignoreFile {
		line = strings.ReplaceAll(strings.ReplaceAll(line, "{", `\{`), "}", `\}`)
	}
	if !doublestar.ValidatePattern(line) {
		return p, errors.New("not a valid glob: look for an unclosed [ or {")
	}
	p.glob = line
	return p, nil
}

func (p pattern) matches(rel string, dir bool) bool {
	return (dir || !p.dirOnly) && doublestar.MatchUnvalidated(p.glob, rel)
}

// rules are the patterns of one ignore file, or of Options.Exclude at the root.
type rules struct {
	dir      string // slash path of the folder, "." for the root
	patterns []pattern
}

// verdict is whether the last pattern that matches excludes rel or takes it back; decided is false
// when none matches.
func (r rules) verdict(rel string, dir bool) (excluded, decided bool) {
	if r.dir != "." {
		rel = strings.TrimPrefix(rel, r.dir+"/")
	}
	for _, p := range slices.Backward(r.patterns) {
		if p.matches(rel, dir) {
			return !p.negated, true
		}
	}
	return false, false
}

// excluded asks the innermost rules first, as git does: they are the more specific ones.
func excluded(stack []rules, rel string, dir bool) bool {
	for _, r := range slices.Backward(stack) {
		if excluded, decided := r.verdict(rel, dir); decided {
			return excluded
		}
	}
	return false
}

// excludedAnywhere is excluded for a path that the walk did not come down to: a folder above it
// counts too.
func excludedAnywhere(stack []rules, rel string) bool {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if excluded(stack, dir, true) {
			return true
		}
	}
	return excluded(stack, rel, false)
}

// parseIgnoreFile returns the patterns and the lines that could not be read.
func parseIgnoreFile(text string) (patterns []pattern, bad []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " \t"); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed // a backslash keeps the trailing space
		}
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := parsePattern(line, true)
		if err != nil {
			bad = append(bad, line)
			continue
		}
		patterns = append(patterns, p)
	}
	return patterns, bad
}

// mustPatterns parses patterns that Validate has passed.
func mustPatterns(lines []string) []pattern {
	var out []pattern
	for _, line := range lines {
		if p, err := parsePattern(line, false); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// included reports whether the patterns take the file, by itself or by a folder above it.
func included(patterns []pattern, rel string) bool {
	if len(patterns) == 0 {
		return true
	}
	stack := []rules{{".", patterns}}
	return excludedAnywhere(stack, rel) // the same matching, with the opposite use
}

// wantsHidden reports whether an Include pattern spells out this hidden name.
func wantsHidden(include []pattern, name string) bool {
	for _, p := range include {
		for segment := range strings.SplitSeq(p.glob, "/") {
			if strings.HasPrefix(segment, ".") {
				if ok, _ := path.Match(segment, name); ok {
					return true
				}
			}
		}
	}
	return false
}
