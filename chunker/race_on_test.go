//go:build race

package chunker

// raceDetector slows everything down tenfold, so texts that are long to show linear time are shorter.
const raceDetector = true
