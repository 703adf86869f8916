package traces

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"assay"
)

// RecordReranker puts the reranker's outcome on its span.
func (s *Span) RecordReranker(r assay.ManifestReranker) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	s.candidates = r.Candidates
	s.span.SetAttributes(
		KeyRerankStatus.String(string(r.Status)),
		KeyRerankCandidates.Int(r.Candidates),
		KeyRerankScored.Int(r.Scored),
		KeyRerankAttempts.Int(r.Attempts),
		KeyRerankLatency.Float64(r.LatencyMS),
		KeyRerankTimeout.Float64(r.TimeoutMS),
	)
	if r.Fallback != "" {
		s.span.SetAttributes(KeyRerankFallback.String(string(r.Fallback)))
	}
}

// RecordUsage puts what a model used on its span. model is the one that answered, "" where it is not
// known to differ from the one that was asked for.
func (s *Span) RecordUsage(u assay.Usage, model, finishReason string) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		s.span.SetAttributes(KeyUsageInput.Int(u.InputTokens))
		if s.chat {
			s.span.SetAttributes(KeyUsageOutput.Int(u.OutputTokens))
		}
	}
	if model != "" {
		s.span.SetAttributes(KeyResponseModel.String(short(model)))
	}
	if finishReason != "" {
		s.span.SetAttributes(KeyFinishReasons.StringSlice([]string{short(finishReason)}))
	}
}

// RecordFound puts the number of candidates on the span of a retrieval or of a channel.
func (s *Span) RecordFound(candidates int) {
	if s != nil {
		s.candidates = candidates
		s.span.SetAttributes(KeyFound.Int(candidates))
	}
}

// RecordManifest puts on the root what people search traces for. The manifest itself holds the rest.
func (s *Span) RecordManifest(m *assay.Manifest) {
	if s == nil || m == nil || !s.span.IsRecording() {
		return
	}
	kept := 0
	for i := range m.Candidates {
		if m.Candidates[i].Disposition == assay.Kept {
			kept++
		}
	}
	attrs := []attribute.KeyValue{
		KeyManifestID.String(short(m.ID)),
		KeyCollection.String(short(m.Collection)),
		KeyFingerprint.String(short(m.Config.Fingerprint)),
		KeyTuned.String(string(m.Config.Tuned.State)),
		KeyKeep.Int(m.Config.Keep),
		KeyDepth.Int(m.Config.Depth),
		KeyGeneration.Int64(int64(m.Corpus.Generation)),
		KeyDegraded.Bool(len(m.Degraded) > 0),
		KeyRerankStatus.String(string(m.Reranker.Status)),
		KeyFound.Int(len(m.Candidates)),
		KeyKept.Int(kept),
		KeyDropped.Int(len(m.Candidates) - kept),
		KeyContextTokens.Int(m.Context.Tokens),
		KeyContextBudget.Int(m.Context.Budget),
		KeyPromptTokens.Int(m.Prompt.Tokens),
		KeyInputTokens.Int(m.Usage.InputTokens),
		KeyOutputTokens.Int(m.Usage.OutputTokens),
		KeyRefused.Bool(m.Answer.Refused),
		KeyCitations.Int(len(m.Answer.Citations)),
		KeyInvalidCitations.Int(len(m.Answer.Invalid)),
	}
	if len(m.Degraded) > 0 {
		names := make([]string, len(m.Degraded))
		for i, name := range m.Degraded {
			names[i] = string(name)
		}
		attrs = append(attrs, KeyDegradedStages.String(short(strings.Join(names, ","))))
	}
	if m.Reranker.Fallback != "" {
		attrs = append(attrs, KeyRerankFallback.String(string(m.Reranker.Fallback)))
	}
	if m.Usage.Cost > 0 {
		attrs = append(attrs, KeyCost.Float64(m.Usage.Cost))
	}
	documents, omitted := encodeDocuments(m.Candidates, documentBytes)
	attrs = append(attrs, KeyDocuments.String(documents), KeyDocumentsOmitted.Int(omitted))
	s.span.SetAttributes(attrs...)
	for _, stage := range m.Stages {
		if stage.Status.Degraded() {
			s.fallback(stage, len(m.Candidates), time.Now())
		}
	}
}

// documentBytes bounds the list of documents on the root, about 60 of them.
const documentBytes = contentBytes

// document is a candidate as spans show it.
type document struct {
	Chunk    string  `json:"id"`
	Document string  `json:"doc"`
	Rank     int     `json:"rank,omitempty"`  // in the ranking that decided
	Score    float64 `json:"score,omitempty"` // in that ranking
	Kept     bool    `json:"kept"`
	Reason   string  `json:"reason,omitempty"` // why it was dropped
}

// encodeDocuments writes candidates as a JSON array of at most max bytes, first those that were kept.
// Those that do not fit are left out whole.
func encodeDocuments(candidates []assay.Candidate, max int) (text string, omitted int) {
	var out bytes.Buffer
	out.WriteByte('[')
	full := false
	for _, kept := range []bool{true, false} {
		for i := range candidates {
			c := &candidates[i]
			if (c.Disposition == assay.Kept) != kept {
				continue
			}
			if full { // a shorter one may still fit, but the list is to be a prefix
				omitted++
				continue
			}
			element := encodeDocument(c)
			if out.Len() > 1 {
				element = append([]byte{','}, element...)
			}
			if full = out.Len()+len(element)+len("]") > max; full {
				omitted++
				continue
			}
			out.Write(element)
		}
	}
	out.WriteByte(']')
	return out.String(), omitted
}

func encodeDocument(c *assay.Candidate) []byte {
	d := document{Chunk: c.ChunkID, Document: c.DocID, Kept: c.Disposition == assay.Kept, Reason: string(c.Reason)}
	for _, p := range []*assay.Placing{c.Rerank, c.Fused} {
		if p != nil {
			d.Rank, d.Score = p.Rank, p.Score
			break
		}
	}
	data, err := json.Marshal(d)
	if err != nil { // a score that is not a number, which JSON cannot hold
		d.Score = 0
		data, _ = json.Marshal(d)
	}
	return data
}
