#!/bin/sh
# Measures the dense engines beside usearch and hnswlib and prints one table.
#
#   ./bench.sh [N] [TEXTS]
#
# N vectors of 384 dimensions are drawn (100,000 by default); with TEXTS, a folder of HTML and text files,
# at most N of its passages are embedded with the built-in model instead. Needs Go and Node.js.
set -eu
cd "$(dirname "$0")"
n=${1:-100000}
texts=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -d node_modules ] || npm install
go build -o "$work/dense" .
dim=384
if [ -n "$texts" ]; then
	dim=$("$work/dense" dimensions)
	"$work/dense" data -dir "$work" -n "$n" -texts "$texts"
else
	"$work/dense" data -dir "$work" -n "$n" -dim "$dim"
fi
"$work/dense" run -dir "$work" -dim "$dim" -engines "${ENGINES:-exact,hnsw,graph,codes,filters,deletes,coder,chromem}" >"$work/ours.jsonl"
node dense.mjs "$work" "$dim" >"$work/peers.jsonl"
"$work/dense" table "$work/ours.jsonl" "$work/peers.jsonl"
