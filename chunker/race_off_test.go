//go:build !race

package chunker

const raceDetector = false
