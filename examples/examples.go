// Package examples holds the sample corpus, so that the binary can show itself without any file.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:ferrywire
var files embed.FS

// Ferrywire is the documentation of an invented product, as a support team would have it.
func Ferrywire() fs.FS {
	corpus, err := fs.Sub(files, "ferrywire")
	if err != nil { // unreachable: the folder is embedded
		panic(err)
	}
	return corpus
}
