package hnsw

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// File is a graph with what its owner wants to know of it when it is opened again.
type File struct {
	Graph *Graph
	Label string   // what the graph is of
	Keys  []uint32 // for each vector the owner's number of it
}

// errByteOrder is returned on machines that a file cannot be mapped on.
var errByteOrder = errors.New("hnsw: graph files are little endian and this machine is not: graphs are rebuilt instead")

// littleEndian reports the machine's byte order.
func littleEndian() bool { return bytesOf([]uint32{1})[0] == 1 }

// Save writes a file that Open can read. The file appears under its path when it is whole and on disk,
// in the place of an older one.
func (f *File) Save(path string) (err error) {
	if !littleEndian() {
		return errByteOrder
	}
	if len(f.Keys) != f.Graph.Len() {
		return fmt.Errorf("hnsw: save: %d keys for %d vectors", len(f.Keys), f.Graph.Len())
	}
	defer runtime.KeepAlive(f.Graph)
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("hnsw: save: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("hnsw: save %s: %w", path, err), os.Remove(tmp.Name()))
		}
	}()
	err = f.write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil // the file is whole; where directories cannot be opened they cannot be synced
	}
	_ = dir.Sync() // a rename that is lost leaves the older file, which the owner tells by its label and keys
	return dir.Close()
}

// write writes the sections behind room for the header, then the header.
func (f *File) write(w io.WriteSeeker) error {
	g := f.Graph
	h := header{n: uint64(g.Len()), seed: g.p.Seed, dim: uint32(g.dim), m: uint32(g.p.M), efc: uint32(g.p.EfConstruction),
		entry: g.entry, topPlus1: uint32(g.top + 1)}
	vectors := make([][]byte, 0, len(g.blocks))
	for i, b := range g.blocks {
		rows := min(blockRows, g.Len()-i*blockRows)
		vectors = append(vectors, bytesOf(b[:rows*g.dim]))
	}
	parts := [sections][][]byte{
		labelSection: {[]byte(f.Label)}, keysSection: {bytesOf(f.Keys)}, kindsSection: {g.kinds},
		offsetSection: {bytesOf(g.offset)}, links0Section: {bytesOf(g.links0)}, upperSection: {bytesOf(g.upper)},
		twinsSection: {bytesOf(g.twins)}, vectorsSection: vectors,
	}
	if _, err := w.Seek(headerSize, io.SeekStart); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	at := uint64(headerSize)
	for i, part := range parts {
		gap := (align - at%align) % align
		if _, err := out.Write(make([]byte, gap)); err != nil {
			return err
		}
		at += gap
		s := section{offset: at}
		for _, b := range part {
			s.crc = crc32.Update(s.crc, castagnoli, b)
			if _, err := out.Write(b); err != nil {
				return err
			}
			s.length += uint64(len(b))
		}
		at += s.length
		h.table[i] = s
	}
	if err := out.Flush(); err != nil {
		return err
	}
	h.size = at
	if _, err := w.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.Write(h.encode())
	return err
}
