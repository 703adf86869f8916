package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// decodeStrict decodes a YAML document into out, a pointer to a struct. A key that the struct does
// not have is an error that names the line and the nearest known key; all such keys are reported at
// once. Settings that the document leaves out keep the value that out came with.
func decodeStrict(name string, data []byte, out any) error {
	var root, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&root); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := decoder.Decode(&more); err == nil {
		return fmt.Errorf("%s: line %d: there is a second document; put all sections into one", name, more.Line)
	}
	if len(root.Content) == 0 { // empty, or comments alone
		return nil
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return fmt.Errorf("%s: line %d: the file must be a mapping of sections, such as \"server:\"", name, root.Content[0].Line)
	}
	if errs := problems(root.Content[0], reflect.TypeOf(out).Elem(), ""); len(errs) > 0 {
		for i, err := range errs {
			errs[i] = fmt.Errorf("%s: %w", name, err)
		}
		return errors.Join(errs...)
	}
	if err := root.Decode(out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// problems walks a mapping beside the struct that it will be decoded into, and finds unknown keys and
// values of the wrong kind.
func problems(node *yaml.Node, t reflect.Type, path string) []error {
	if want := kindName(t); want != "" && !fits(node, t) {
		return []error{fmt.Errorf("line %d: %s must be %s, not %q", node.Line, path, want, short(node))}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	fields := yamlFields(t)
	var errs []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field, ok := fields[key.Value]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		if ok {
			errs = append(errs, problems(value, field, full)...)
			continue
		}
		if env := secretFor(full); env != "" {
			errs = append(errs, fmt.Errorf("line %d: %q: secrets are not read from files; set the environment variable %s instead", key.Line, full, env))
			continue
		}
		errs = append(errs, fmt.Errorf("line %d: unknown key %q%s", key.Line, full, suggest(full, knownKeys(t, path))))
	}
	return errs
}

// kindName says what a value of a type looks like; "" for types that read themselves.
func kindName(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()) {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct:
		return "a section of settings"
	case reflect.Slice:
		return "a list"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return ""
}

// fits reports whether a node can be a value of a type.
func fits(node *yaml.Node, t reflect.Type) bool {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch t.Kind() {
	case reflect.Struct:
		return node.Kind == yaml.MappingNode
	case reflect.Slice:
		return node.Kind == yaml.SequenceNode
	case reflect.Int, reflect.Int64:
		return node.Tag == "!!int"
	case reflect.Float64:
		v, err := strconv.ParseFloat(node.Value, 64)
		return (node.Tag == "!!int" || node.Tag == "!!float") && err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
	case reflect.Bool:
		return node.Tag == "!!bool"
	case reflect.String:
		return node.Kind == yaml.ScalarNode
	}
	return true
}

// short is a node's value as far as an error shows it.
func short(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode {
		return map[yaml.Kind]string{yaml.MappingNode: "a section", yaml.SequenceNode: "a list"}[node.Kind]
	}
	return clip(node.Value, 40)
}

// yamlFields lists a struct's keys with the types behind them.
func yamlFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

// knownKeys lists the keys that could have stood in place of an unknown one below path: those of the
// same section, and those of all sections, since a key is often right and its section wrong.
func knownKeys(t reflect.Type, path string) []string {
	var keys []string
	for name := range yamlFields(t) {
		keys = append(keys, strings.TrimPrefix(path+"."+name, "."))
	}
	for name, section := range yamlFields(reflect.TypeFor[Config]()) {
		if section.Kind() == reflect.Struct {
			for sub := range yamlFields(section) {
				keys = append(keys, name+"."+sub)
			}
		}
	}
	return keys
}

// suggest names the known key nearest to an unknown one, where one is near enough to be meant.
func suggest(unknown string, known []string) string {
	best, distance := "", len(unknown)/2+1
	last := unknown[strings.LastIndexByte(unknown, '.')+1:]
	for _, key := range known {
		d := levenshtein.ComputeDistance(unknown, key)
		if strings.HasSuffix(key, "."+last) {
			d = min(d, 2) // the right key in another section
		}
		if d < distance || d == distance && key < best {
			best, distance = key, d
		}
	}
	if best == "" {
		return "; `assay config show` prints the known ones"
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
