package ingest

import (
	"errors"
	"fmt"
)

type globs struct {
	name     string
	patterns []string
}

type bound struct {
	name  string
	value int64
}

func validate(gs []globs, bounds []bound) error {
	var errs []error
	for _, g := range gs {
		for _, p := range g.patterns {
			if _, err := parsePattern(p, false); err != nil {
				errs = append(errs, fmt.Errorf("ingest: %s %q: %w", g.name, p, err))
			}
		}
	}
	for _, b := range bounds {
		if b.value < 0 {
			errs = append(errs, fmt.Errorf("ingest: %s is %d: give a positive number, or 0 for the default", b.name, b.value))
		}
	}
	return errors.Join(errs...)
}
