package embed

// batch is a half-open range of the texts of one call.
type batch struct{ start, end int }

// prepare puts the prefix before each text, cuts what is too long, and counts.
func (e *Endpoint) prepare(texts []string, prefix string) (inputs []string, tokens []int) {
	inputs = make([]string, len(texts))
	tokens = make([]int, len(texts))
	for i, text := range texts {
		input := prefix + text
		n := e.o.Count(input)
		if n > e.o.MaxInputTokens {
			input = e.o.Truncate(input, e.o.MaxInputTokens)
			n = e.o.MaxInputTokens
			e.truncated.Add(1)
		}
		inputs[i], tokens[i] = input, n
	}
	return inputs, tokens
}

// batches groups texts so that each group is within the bounds of a request. A text that is over
// BatchTokens by itself travels alone.
func (e *Endpoint) batches(tokens []int) []batch {
	var out []batch
	start, sum := 0, 0
	for i, n := range tokens {
		if i > start && (i-start == e.o.BatchSize || sum+n > e.o.BatchTokens) {
			out = append(out, batch{start, i})
			start, sum = i, 0
		}
		sum += n
	}
	if start < len(tokens) {
		out = append(out, batch{start, len(tokens)})
	}
	return out
}
