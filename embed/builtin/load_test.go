package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

// tiny returns a weights file of three rows of two dimensions.
func tiny(edit func(file []byte) []byte) []byte {
	var b bytes.Buffer
	vocabulary := "[UNK]\nhorse\n##s\n"
	b.WriteString(magic)
	for _, n := range []uint32{formatVersion, 0, 3, 2, uint32(len(vocabulary))} {
		binary.Write(&b, binary.LittleEndian, n)
	}
	name := make([]byte, headerSize-b.Len())
	copy(name, "tiny")
	b.Write(name)
	b.WriteString(vocabulary)
	binary.Write(&b, binary.LittleEndian, []uint16{1, 500, 1000})
	binary.Write(&b, binary.LittleEndian, []int8{-1, 0, 3, 4, 0, 0})
	file := b.Bytes()
	if edit != nil {
		file = edit(file)
	}
	if len(file) >= 16 {
		binary.LittleEndian.PutUint32(file[12:], crc32.Checksum(file[16:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return file
}

func TestParse(t *testing.T) {
	m, err := parse(tiny(nil))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "tiny" || m.Dimensions() != 2 {
		t.Errorf("model %q of %d dimensions", m.Name(), m.Dimensions())
	}
	if v := embed(m, "Horses"); v[0] != 0.6 || v[1] != 0.8 {
		t.Errorf("vector is %v, want 0.6 0.8", v)
	}
	if v := embed(m, "cows"); v[0] != -1 || v[1] != 0 {
		t.Errorf("vector of an unknown word is %v, want -1 0", v)
	}
}

func TestParseRefuses(t *testing.T) {
	set := func(at int, value uint32) func([]byte) []byte {
		return func(f []byte) []byte { binary.LittleEndian.PutUint32(f[at:], value); return f }
	}
	for name, edit := range map[string]func([]byte) []byte{
		"empty":           func(f []byte) []byte { return nil },
		"header only":     func(f []byte) []byte { return f[:headerSize] },
		"cut":             func(f []byte) []byte { return f[:len(f)-1] },
		"too long":        func(f []byte) []byte { return append(f, 0) },
		"magic":           set(0, 0),
		"version":         set(8, 2),
		"rows":            set(16, 4),
		"no rows":         set(16, 0),
		"dimensions":      set(20, 1<<31),
		"vocabulary":      set(24, 1<<31),
		"lines":           func(f []byte) []byte { f[bytes.IndexByte(f[headerSize:], '\n')+headerSize] = ' '; return f },
		"no unknown":      func(f []byte) []byte { return bytes.Replace(f, []byte("[UNK]"), []byte("[unk]"), 1) },
		"zero of unknown": func(f []byte) []byte { f[len(f)-6] = 0; return f },
	} {
		if m, err := parse(tiny(edit)); m != nil || !errors.Is(err, ErrFormat) {
			t.Errorf("%s: model %v, error %v", name, m, err)
		}
	}
	damaged := tiny(nil)
	damaged[len(damaged)-1]++
	if _, err := parse(damaged); !errors.Is(err, ErrFormat) {
		t.Errorf("damaged: error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tiny(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		parse(tiny(func([]byte) []byte { return bytes.Clone(file) })) // must not panic
	})
}
