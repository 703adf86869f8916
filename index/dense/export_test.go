package dense

// NewEager returns a view that makes a graph of few vectors already, and always asks it, so that tests
// of the graph can be small.
func NewEager(e Engine) func(dimensions int) (View, error) {
	return func(dimensions int) (View, error) {
		v, err := New(e, dimensions)
		if err != nil {
			return nil, err
		}
		g := v.(*Graphed)
		g.tuning.scans, g.tuning.from = 0, 256
		return g, nil
	}
}
