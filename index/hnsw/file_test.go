package hnsw

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const fileDim = 8

// fileGraph is a graph with several blocks, upper layers and twins.
func fileGraph(t testing.TB, n int) *File {
	vectors := clustered(n, fileDim, 21)
	if n > 20 {
		copy(vectors[(n-5)*fileDim:], vectors[:5*fileDim])
	}
	g := mustBuild(t, vectors, fileDim, Params{M: 4, EfConstruction: 20, Seed: 5})
	f := &File{Graph: g, Label: "of a test"}
	for id := range n {
		f.Keys = append(f.Keys, uint32(3*id))
	}
	return f
}

func saved(t testing.TB, f *File) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "graph")
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestSavedGraphIsTheSame(t *testing.T) {
	for _, n := range []int{0, 1, 100, blockRows, 2*blockRows + 7} {
		want := fileGraph(t, n)
		path, _ := saved(t, want)
		got, err := Open(path)
		if err != nil {
			t.Fatalf("%d vectors: %v", n, err)
		}
		if !equal(got.Graph, want.Graph) || got.Label != want.Label || !slices.Equal(got.Keys, want.Keys) || got.Graph.Params() != want.Graph.Params() {
			t.Errorf("%d vectors: another graph comes back", n)
		}
		if err := os.Remove(path); err != nil { // what is mapped stays
			t.Fatal(err)
		}
		for id := range uint32(n) {
			if !slices.Equal(got.Graph.Vector(id), want.Graph.Vector(id)) {
				t.Fatalf("%d vectors: number %d is another one", n, id)
			}
		}
		further := rows(clustered(300, fileDim, 22), fileDim)
		a, errA := want.Graph.Extend(t.Context(), further, 0)
		b, errB := got.Graph.Extend(t.Context(), further, 0)
		if errA != nil || errB != nil || !equal(a, b) {
			t.Errorf("%d vectors: the extended graphs differ (%v, %v)", n, errA, errB)
		}
		runtime.GC() // what is shared with a mapped graph stays mapped
		checkGraph(t, b)
		for id := range uint32(n) {
			if !slices.Equal(b.Vector(id), a.Vector(id)) {
				t.Fatalf("%d vectors: number %d of the extended graph is another one", n, id)
			}
		}
	}
}

func TestSaveReplacesAndLeavesNothingBehind(t *testing.T) {
	path, _ := saved(t, fileGraph(t, 10))
	if err := fileGraph(t, 50).Save(path); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(path); err != nil || f.Graph.Len() != 50 {
		t.Errorf("%v, %v", f, err)
	}
	bad := fileGraph(t, 10)
	bad.Keys = bad.Keys[1:]
	if err := bad.Save(path); err == nil {
		t.Error("a graph without all keys is saved")
	}
	if err := fileGraph(t, 10).Save(filepath.Join(path, "below a file")); err == nil {
		t.Error("saving where nothing can be reports nothing")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Every single byte counts: whichever is changed, the damage is found, and its section named.
func TestEveryFlippedByteIsFound(t *testing.T) {
	path, data := saved(t, fileGraph(t, 40))
	h, err := decodeHeader(path, data)
	if err != nil {
		t.Fatal(err)
	}
	inside := make([]string, len(data))
	for i := range headerSize {
		inside[i] = "header"
	}
	for i, s := range h.table {
		for at := s.offset; at < s.offset+s.length; at++ {
			inside[at] = sectionNames[i]
		}
	}
	for at := range data {
		if inside[at] == "" { // between sections there is nothing to damage
			continue
		}
		data[at] ^= 0x10
		_, err := decode(path, data, nil)
		data[at] ^= 0x10
		var corrupt *CorruptError
		var version *VersionError
		switch {
		case at >= 8 && at < 12 && errors.As(err, &version):
		case errors.As(err, &corrupt) && corrupt.Section == inside[at] && strings.Contains(err.Error(), path):
		default:
			t.Errorf("byte %d, of the %s: %v", at, inside[at], err)
		}
	}
	if _, err := decode(path, data, nil); err != nil {
		t.Errorf("the whole file: %v", err)
	}
}

func TestTruncatedFilesAreFound(t *testing.T) {
	path, data := saved(t, fileGraph(t, 40))
	for size := 0; size < len(data); size += 13 {
		if err := os.WriteFile(path, data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := Open(path); !errors.As(err, &corrupt) || corrupt.Section != "header" {
			t.Fatalf("%d bytes of %d: %v", size, len(data), err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// reseal gives a changed file the checksums of its contents, so that only what it says is wrong.
func reseal(data []byte) {
	if len(data) < headerSize {
		return
	}
	le := binary.LittleEndian
	for i := range sections {
		entry := data[tableAt+i*entryBytes:]
		offset, length := le.Uint64(entry), le.Uint64(entry[8:])
		if offset <= uint64(len(data)) && length <= uint64(len(data))-offset {
			le.PutUint32(entry[16:], crc32.Checksum(data[offset:offset+length], castagnoli))
		}
	}
	clear(data[12:16])
	le.PutUint32(data[12:], crc32.Checksum(data[:headerSize], castagnoli))
}

func TestLinksThatLeadNowhereAreFound(t *testing.T) {
	path, data := saved(t, fileGraph(t, 200))
	h, err := decodeHeader(path, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []int{kindsSection, offsetSection, links0Section, upperSection, twinsSection} {
		for _, value := range []byte{0xfe, 0x3f} {
			bad := slices.Clone(data)
			at := h.table[section].offset
			bad[at], bad[at+1], bad[at+2] = value, value, value
			reseal(bad)
			var corrupt *CorruptError
			if _, err := decode(path, bad, nil); !errors.As(err, &corrupt) {
				t.Errorf("%x at the beginning of the %s: %v", value, sectionNames[section], err)
			}
		}
	}
	bad := slices.Clone(data)
	binary.LittleEndian.PutUint32(bad[52:], 200) // the entry node
	reseal(bad)
	var corrupt *CorruptError
	if _, err := decode(path, bad, nil); !errors.As(err, &corrupt) {
		t.Errorf("an entry node that is not there: %v", err)
	}
}

// Whatever is in a file whose checksums are right, opening it and searching do not fail.
func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 1, 3, 60} {
		_, data := saved(f, fileGraph(f, n))
		f.Add(data, uint16(0), byte(0))
		f.Add(data, uint16(headerSize+80), byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, value byte) {
		data = slices.Clone(data)
		if int(at) < len(data) {
			data[at] = value
		}
		reseal(data)
		file, err := decode("fuzzed", data, nil)
		if err != nil {
			return
		}
		g := file.Graph
		if g.Len() != len(file.Keys) {
			t.Fatalf("%d vectors, %d keys", g.Len(), len(file.Keys))
		}
		search(t, g, make([]float32, g.Dimensions()), 5, 20, nil)
		if _, err := g.Extend(t.Context(), [][]float32{make([]float32, g.Dimensions())}, 1); err != nil {
			t.Fatal(err)
		}
	})
}
