package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// decodeStrict decodes a YAML document into out, a pointer to a struct. A key that the struct does
// not have is an error that names the line and the nearest known key; all such keys are reported at
// once. Settings that the document leaves out keep the value that out came with.
func decodeStrict(name string, data []byte, out any) error {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(root.Content) == 0 { // empty, or comments alone
		return nil
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return fmt.Errorf("%s: line %d: the file must be a mapping of sections, such as \"server:\"", name, root.Content[0].Line)
	}
	if errs := unknownKeys(root.Content[0], reflect.TypeOf(out).Elem(), ""); len(errs) > 0 {
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

// unknownKeys walks a mapping beside the struct that it will be decoded into.
func unknownKeys(node *yaml.Node, t reflect.Type, path string) []error {
	if node.Kind != yaml.MappingNode || t.Kind() != reflect.Struct {
		return nil
	}
	fields := yamlFields(t)
	var errs []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field, ok := fields[key.Value]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		if ok {
			errs = append(errs, unknownKeys(value, field, full)...)
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
