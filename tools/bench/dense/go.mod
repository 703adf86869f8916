module assay/tools/bench/dense

go 1.26.0

require (
	assay v0.0.0
	github.com/bits-and-blooms/bitset v1.24.4
	github.com/philippgille/chromem-go v0.7.0
	github.com/viterin/vek v0.4.3
	golang.org/x/net v0.62.0
)

require (
	github.com/blevesearch/mmap-go v1.2.0 // indirect
	github.com/chewxy/math32 v1.10.1 // indirect
	github.com/coder/hnsw v0.6.2-0.20260622133054-36cab6028fed // indirect
	github.com/google/renameio v1.0.1 // indirect
	github.com/viterin/partial v1.1.0 // indirect
	golang.org/x/exp v0.0.0-20260908205506-85c1c2202aba // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace assay => ../../..
