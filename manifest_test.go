package assay_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay"
)

func manifestSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("docs/manifest.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("manifest.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(schema *jsonschema.Schema, m *assay.Manifest) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return schema.Validate(instance)
}

// fill sets every field to something, so that a field that the schema lacks is found.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(true)
	}
}

func fullManifest() *assay.Manifest {
	m := &assay.Manifest{}
	fill(reflect.ValueOf(m).Elem())
	m.Schema, m.ID = assay.ManifestSchema, "m_1"
	m.Query.Filter = assay.Filter{Conditions: []assay.Condition{{Field: "lang", Op: assay.AnyOf, Values: []string{"en"}}}}
	m.Config.Tuned.State = assay.TunedStale
	m.Stages[0].Name, m.Stages[0].Status = assay.StageRerank, assay.StatusTimeout
	m.Reranker.Status, m.Reranker.Fallback = assay.RerankTimeout, assay.FallbackWiden
	m.Candidates[0].Disposition, m.Candidates[0].Reason = assay.Dropped, assay.DropDuplicate
	m.Context.Order = "best_first"
	m.Degraded[0] = assay.StageRerank
	return m
}

func TestManifestMatchesItsSchema(t *testing.T) {
	schema := manifestSchema(t)
	if err := validate(schema, fullManifest()); err != nil {
		t.Errorf("a manifest with every field: %v", err)
	}
	empty := fullManifest()
	empty.Stages, empty.Candidates, empty.Degraded = []assay.Stage{}, []assay.Candidate{}, []assay.StageName{}
	empty.Context, empty.Reranker = assay.ManifestContext{Passages: []assay.ContextPassage{}}, assay.ManifestReranker{}
	empty.Answer = assay.ManifestAnswer{Citations: []assay.Citation{}}
	if err := validate(schema, empty); err != nil {
		t.Errorf("a manifest of a request that failed at once: %v", err)
	}
	wrong := fullManifest()
	wrong.Stages[0].Status = "broken"
	if validate(schema, wrong) == nil {
		t.Error("a status outside the vocabulary passes the schema")
	}
}

func TestManifestSurvivesJSON(t *testing.T) {
	m := fullManifest()
	m.Candidates[0].Text = "" // never in a manifest
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back assay.Manifest
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	m.Stages[0].Duration, back.Stages[0].Duration = 0, 0 // written to the microsecond
	if !reflect.DeepEqual(m, &back) {
		t.Errorf("got %+v\nwant %+v", &back, m)
	}
}
