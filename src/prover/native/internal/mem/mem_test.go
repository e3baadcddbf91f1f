package mem

import "testing"

func TestArraysAreZeroedWipedAndFreed(t *testing.T) {
	var a Arena
	defer a.Free()
	for _, n := range []int{0, 1, 1000, 1 << 20} { // the last has its own mapping
		s, err := Slice[uint64](&a, n)
		if err != nil || len(s) != n {
			t.Fatal(n, err)
		}
		for i := range s {
			if s[i] != 0 {
				t.Fatal("not zeroed")
			}
			s[i] = 1
		}
		a.Wipe()
		for i := range s {
			if s[i] != 0 {
				t.Fatal("not wiped")
			}
		}
	}
}

func TestTooMuchMemoryIsAnError(t *testing.T) {
	var a Arena
	defer a.Free()
	if _, err := Slice[uint64](&a, 1<<55); err == nil {
		t.Fatal("2^55 elements were allocated")
	}
}

func TestBytesAreTheSameMemory(t *testing.T) {
	s := []uint32{1, 2}
	b := Bytes(s)
	b[4] = 7
	if len(b) != 8 || s[1] != 7 || Bytes([]uint32{}) != nil {
		t.Fatal(s, b)
	}
}
