// Package assay is the shared vocabulary of a retrieval-augmented generation engine in one binary,
// and this page is the map of the tree. The types here are plain data: a type stands here only if
// three or more packages exchange it. Read the packages from the bottom up.
//
// The write path, driven by "assay ingest":
//
//   - ingest finds files, folders, streams and JSON Lines, converts them to Documents and tells what
//     changed since the last run. It exists so that nothing below it knows of formats or encodings.
//   - chunker splits a Document into Chunks of a configured size in tokens. It exists so that a
//     passage is the same passage on every run and every machine.
//   - embed turns texts into vectors: a built-in model, any OpenAI-compatible endpoint, and a cache.
//   - index keeps documents, chunks and vectors in one transactional store and derives the dense and
//     the BM25 index from it. It exists so that the two channels cannot disagree about what exists.
//
// The read path, driven by "assay ask", "assay search" and "assay serve":
//
//   - retriever searches both channels side by side and fuses them into one ranking.
//   - rerank calls a cross-encoder over HTTP under a deadline, with a fallback that somebody chose.
//   - assemble decides what enters the prompt, within a budget, and writes the manifest.
//   - generate writes the answer and its citations: a chat endpoint, or the built-in extractive one.
//
// Around them:
//
//   - engine composes the read path and the write path. The CLI, the server and the evaluation use
//     it, so that all three see the same pipeline.
//   - server speaks HTTP, through an interface of its own.
//   - control carries a command to the process that holds the data directory, and its output back. It
//     exists so that an update needs neither a restart of the server nor a second writer.
//   - traces names every span and attribute and sets OpenTelemetry up.
//   - eval computes metrics from judged collections and from manifests.
//   - cmd/assay reads flags and the configuration file and wires it all; the only place that names
//     concrete models and files.
//   - examples holds the sample corpus.
//   - tools holds the scripts that made the built-in model.
//
// Which package may import which is held by a test beside this file.
package assay
