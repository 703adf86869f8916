package dense_test

import (
	"testing"

	"assay/index/dense"
	"assay/index/dense/densetest"
)

func fresh(e dense.Engine) func(int) (dense.View, error) {
	return func(dimensions int) (dense.View, error) { return dense.New(e, dimensions) }
}

func TestExact(t *testing.T) {
	densetest.Run(t, fresh(dense.EngineExact), densetest.Bounds{Recall: 1, Copies: true})
}

func TestHNSW(t *testing.T) {
	densetest.Run(t, fresh(dense.EngineHNSW), densetest.Bounds{Recall: 0.99, Copies: true})
}

func TestHNSWThatIsAlwaysAsked(t *testing.T) {
	densetest.Run(t, dense.NewEager(dense.EngineHNSW), densetest.Bounds{Recall: 0.99, Copies: true})
}

// Its recall is what the library reaches; of many equal vectors it finds some.
func TestCoderThatIsAlwaysAsked(t *testing.T) {
	densetest.Run(t, dense.NewEager(dense.EngineCoder), densetest.Bounds{Recall: 0.9})
}

func TestUnknownEngine(t *testing.T) {
	if v, err := dense.New("flat", 4); err == nil {
		t.Errorf("%v", v)
	}
	if v, err := dense.New(dense.EngineHNSW, 0); err == nil {
		t.Errorf("no dimensions: %v", v)
	}
}
