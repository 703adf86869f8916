package assay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrFilter is returned for a filter that cannot be read; the error text says where and why.
var ErrFilter = errors.New("filter")

// Filter restricts which documents a query may see. All conditions must hold. The zero Filter lets
// everything pass; a filter that no document passes yields no results, never all of them.
//
// In JSON it is an object of fields; a bare value is equality, an array is any-of, and an object
// holds operators:
//
//	{"product": "relay", "lang": ["en", "de"], "effective": {"gte": "2025-01-01"},
//	 "uri": {"prefix": "runbooks/"}, "audience": {"not": "internal"}}
//
// An array of such objects is a conjunction too; it is needed only to put one operator on one field
// twice. A field is a metadata key or one of id, uri, title, format, language, version and modified.
type Filter struct {
	Conditions []Condition
}

// Condition is one operator applied to one field. A field with several values passes when any of
// them does; Not passes when none does, so also when the field is absent.
type Condition struct {
	Field  string
	Op     Op
	Values []string // one value, except for AnyOf and Not
}

// Op is a filter operator.
type Op string

// The operators. Ranges compare numbers when both sides are numbers, dates when both are dates
// (RFC 3339 or YYYY-MM-DD), and otherwise never match.
const (
	AnyOf  Op = "any" // equality with one of Values
	Not    Op = "not" // equality with none of Values
	Prefix Op = "prefix"
	GT     Op = "gt"
	GTE    Op = "gte"
	LT     Op = "lt"
	LTE    Op = "lte"
)

// access is the operator of AccessFilter. It is not among those that a request can write.
const access Op = "access"

// accessField is the metadata field that holds the tags of those who may see a document.
const accessField = "allow"

// AccessFilter lets pass what a caller with the given tags may see: documents without an access list
// (the metadata field "allow"), and those whose list holds one of the tags. A list may be written as
// one text with commas. No JSON makes such a filter, so that a request can only narrow it, by And.
func AccessFilter(tags []string) Filter {
	// The empty tag, which is nobody's, stands for having none.
	return Filter{Conditions: []Condition{{Field: accessField, Op: access, Values: append([]string{""}, tags...)}}}
}

// Restricted reports whether the document has an access list, be it empty or unreadable.
func (d *Document) Restricted() bool {
	if _, ok := d.Metadata[accessField]; ok {
		return true
	}
	for field := range d.Metadata {
		if strings.HasPrefix(field, accessField+".") { // an object in the place of a list
			return true
		}
	}
	return false
}

// visible reports whether somebody with the tags may see the document.
func (d *Document) visible(tags []string) bool {
	if !d.Restricted() {
		return true
	}
	for _, value := range d.Metadata[accessField] {
		for tag := range strings.SplitSeq(value, ",") {
			if tag = strings.TrimSpace(tag); tag != "" && slices.Contains(tags, tag) {
				return true
			}
		}
	}
	return false
}

// TakesMany reports whether a condition with the operator may have several values.
func (o Op) TakesMany() bool { return o == AnyOf || o == Not || o == access }

// maxFilterConditions bounds the size of a filter that a request can carry.
const maxFilterConditions = 64

// Empty reports whether the filter lets everything pass.
func (f Filter) Empty() bool { return len(f.Conditions) == 0 }

// And returns a filter that demands both.
func (f Filter) And(g Filter) Filter {
	return Filter{Conditions: slices.Concat(f.Conditions, g.Conditions)}
}

// Match reports whether a document passes.
func (f Filter) Match(d *Document) bool {
	for _, c := range f.Conditions {
		if c.Op == access && !d.visible(c.Values) || c.Op != access && !c.match(d.field(c.Field)) {
			return false
		}
	}
	return true
}

func (d *Document) field(name string) []string {
	switch name {
	case "id":
		return []string{d.ID}
	case "uri":
		return []string{d.URI}
	case "title":
		return []string{d.Title}
	case "format":
		return []string{d.Format}
	case "language":
		return []string{d.Language}
	case "version":
		return []string{d.Version}
	case "modified":
		if d.Modified.IsZero() {
			return nil
		}
		return []string{d.Modified.UTC().Format(time.RFC3339)}
	}
	return d.Metadata[name]
}

func (c Condition) match(values []string) bool {
	if len(c.Values) == 0 { // made by hand: no filter that was read is like that
		return false
	}
	if c.Op == Not {
		return !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(c.Values, v) })
	}
	return slices.ContainsFunc(values, func(v string) bool {
		switch c.Op {
		case AnyOf:
			return slices.Contains(c.Values, v)
		case Prefix:
			return strings.HasPrefix(v, c.Values[0])
		}
		order, ok := compareValues(v, c.Values[0])
		if !ok {
			return false
		}
		switch c.Op {
		case GT:
			return order > 0
		case GTE:
			return order >= 0
		case LT:
			return order < 0
		case LTE:
			return order <= 0
		}
		return false
	})
}

// compareValues orders two written values as numbers or as dates; ok is false when they are neither.
func compareValues(a, b string) (order int, ok bool) {
	if x, err := strconv.ParseFloat(a, 64); err == nil {
		if y, err := strconv.ParseFloat(b, 64); err == nil {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, x == y // NaN is comparable with nothing
		}
	}
	x, xok := parseDate(a)
	y, yok := parseDate(b)
	if xok && yok {
		return x.Compare(y), true
	}
	return 0, false
}

func parseDate(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// UnmarshalJSON reads the object form shown at Filter.
func (f *Filter) UnmarshalJSON(data []byte) error {
	var objects []map[string]json.RawMessage
	if json.Unmarshal(data, &objects) != nil {
		objects = make([]map[string]json.RawMessage, 1)
		if err := json.Unmarshal(data, &objects[0]); err != nil {
			return fmt.Errorf("%w: must be an object of fields, such as {\"product\": \"relay\"}", ErrFilter)
		}
	}
	f.Conditions = nil
	for _, fields := range objects {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			conditions, err := parseConditions(field, fields[field])
			if err != nil {
				return err
			}
			f.Conditions = append(f.Conditions, conditions...)
		}
	}
	if len(f.Conditions) > maxFilterConditions {
		return fmt.Errorf("%w: %d conditions, at most %d are allowed", ErrFilter, len(f.Conditions), maxFilterConditions)
	}
	return nil
}

func parseConditions(field string, data json.RawMessage) ([]Condition, error) {
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("%w: field %q: %v", ErrFilter, field, err)
	}
	operators, ok := raw.(map[string]any)
	if !ok {
		values, err := filterValues(field, raw)
		if err != nil {
			return nil, err
		}
		return []Condition{{Field: field, Op: AnyOf, Values: values}}, nil
	}
	if len(operators) == 0 {
		return nil, fmt.Errorf("%w: field %q: no operator; use any, not, prefix, gt, gte, lt or lte", ErrFilter, field)
	}
	var out []Condition
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		values, err := filterValues(field, operators[name])
		if err != nil {
			return nil, err
		}
		op := Op(name)
		switch op {
		case AnyOf, Not:
		case Prefix, GT, GTE, LT, LTE:
			if len(values) != 1 {
				return nil, fmt.Errorf("%w: field %q: %s takes one value", ErrFilter, field, name)
			}
			if op != Prefix {
				if _, ok := compareValues(values[0], values[0]); !ok {
					return nil, fmt.Errorf("%w: field %q: %s takes a number or a date (2025-01-31), not %q", ErrFilter, field, name, values[0])
				}
			}
		default:
			return nil, fmt.Errorf("%w: field %q: unknown operator %q; use any, not, prefix, gt, gte, lt or lte", ErrFilter, field, name)
		}
		out = append(out, Condition{Field: field, Op: op, Values: values})
	}
	return out, nil
}

// filterValues flattens a JSON scalar or array of scalars to strings, as Metadata does.
func filterValues(field string, raw any) ([]string, error) {
	items, ok := raw.([]any)
	if !ok {
		items = []any{raw}
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		switch v := item.(type) {
		case string:
			out = append(out, v)
		case float64:
			out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
		case bool:
			out = append(out, strconv.FormatBool(v))
		default:
			return nil, fmt.Errorf("%w: field %q: values are strings, numbers or booleans", ErrFilter, field)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: field %q: an empty list matches nothing; leave the field out", ErrFilter, field)
	}
	return out, nil
}

// MarshalJSON writes the object form; conditions on one field are gathered. Where an operator stands
// on a field twice, it writes an array of objects.
func (f Filter) MarshalJSON() ([]byte, error) {
	objects := []map[string]map[Op]any{{}}
	for _, c := range f.Conditions {
		i := slices.IndexFunc(objects, func(o map[string]map[Op]any) bool { return o[c.Field][c.Op] == nil })
		if i < 0 {
			i = len(objects)
			objects = append(objects, map[string]map[Op]any{})
		}
		if objects[i][c.Field] == nil {
			objects[i][c.Field] = map[Op]any{}
		}
		if c.Op == AnyOf || c.Op == Not {
			objects[i][c.Field][c.Op] = c.Values
		} else {
			objects[i][c.Field][c.Op] = c.Values[0]
		}
	}
	if len(objects) == 1 {
		return json.Marshal(objects[0])
	}
	return json.Marshal(objects)
}
