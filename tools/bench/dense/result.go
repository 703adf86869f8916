package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// result is one line of output; which fields are set depends on what was measured.
type result struct {
	N       int    `json:"n"`
	Dim     int    `json:"dim"`
	Index   string `json:"index"`
	Setting string `json:"setting,omitempty"`

	Threads        int     `json:"threads,omitempty"`
	BuildPerVector float64 `json:"build_us_per_vector,omitempty"`
	BytesPerVector float64 `json:"bytes_per_vector,omitempty"`
	WithVectors    bool    `json:"includes_vectors,omitempty"`
	OpenMillis     float64 `json:"open_ms,omitempty"`

	K      int     `json:"k,omitempty"`
	P50    float64 `json:"p50_us,omitempty"`
	P95    float64 `json:"p95_us,omitempty"`
	Recall float64 `json:"recall,omitempty"`

	OneReader  float64 `json:"qps_1,omitempty"`
	TwoReaders float64 `json:"qps_2,omitempty"`
	OneCPU     float64 `json:"searches_per_cpu_second_1,omitempty"`
	TwoCPU     float64 `json:"searches_per_cpu_second_2,omitempty"`
}

func (d *dataset) say(r result) error {
	r.N, r.Dim = len(d.base), d.dim
	return json.NewEncoder(os.Stdout).Encode(r)
}

// searcher returns the ids of the k nearest.
type searcher func(query []float32, k int) ([]int32, error)

// passes over all queries; the least time of each query counts, so that a pause for what else the
// machine does is not taken for slowness. A pass goes through more memory than caches hold.
const passes = 3

// measure runs all queries from one goroutine on one core and prints latency and recall.
func (d *dataset) measure(index, setting string, search searcher) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, k := range []int{10, truthDepth} {
		hits := 0
		took := make([]time.Duration, len(d.query))
		for pass := range passes {
			for q, query := range d.query {
				start := time.Now()
				ids, err := search(query, k)
				if err != nil {
					return err
				}
				if t := time.Since(start); pass == 0 || t < took[q] {
					took[q] = t
				}
				if pass == 0 {
					hits += overlap(ids, d.truth[q][:k])
				}
			}
		}
		slices.Sort(took)
		at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Nanoseconds()) / 1000 }
		r := result{Index: index, Setting: setting, K: k, P50: at(0.5), P95: at(0.95), Recall: float64(hits) / float64(len(d.query)*k)}
		if err := d.say(r); err != nil {
			return err
		}
	}
	return nil
}

func overlap(got, want []int32) int {
	hits := 0
	for _, id := range got {
		if slices.Contains(want, id) {
			hits++
		}
	}
	return hits
}

// throughput prints the searches a second with one reader and with two. They take turns in short
// spells, so that what else the machine does meets both alike. Where it leaves no two cores free, the
// searches in a second of processor time say whether readers are in each other's way.
func (d *dataset) throughput(index, setting string, search func() searcher) error {
	const spells, spell = 5, 400 * time.Millisecond
	var done [3]atomic.Int64
	var used [3]float64
	var mu sync.Mutex // guards failed
	var failed error
	for range spells {
		for readers := 1; readers <= 2; readers++ {
			end, before := time.Now().Add(spell), cpu()
			var wg sync.WaitGroup
			for r := range readers {
				wg.Go(func() {
					own := search()
					for i := r * 7; time.Now().Before(end); i++ {
						if _, err := own(d.query[i%len(d.query)], truthDepth); err != nil {
							mu.Lock()
							failed = err
							mu.Unlock()
							return
						}
						done[readers].Add(1)
					}
				})
			}
			wg.Wait()
			if failed != nil {
				return failed
			}
			used[readers] += (cpu() - before) / 1e6
		}
	}
	rate := func(readers int, seconds float64) float64 { return float64(done[readers].Load()) / seconds }
	wall := (spells * spell).Seconds()
	return d.say(result{Index: index, Setting: setting, OneReader: rate(1, wall), TwoReaders: rate(2, wall),
		OneCPU: rate(1, used[1]), TwoCPU: rate(2, used[2])})
}

// cpu is the processor time that the program has taken so far, in microseconds. Building is measured by
// it, so that what else the machine does is not counted.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // unreachable: the arguments are constants
	}
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

// heap is what is in use on the heap.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
