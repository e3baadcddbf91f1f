// Package mem gives out large arrays outside Go's heap: on huge pages where the kernel has them (the products read
// points in random order, which costs a TLB miss each on small pages), zeroed, and wiped and returned at a known time.
package mem

import (
	"unsafe"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/par"
)

// Plain is a type without Go pointers, which the garbage collector needn't see.
type Plain any

// Arena owns arrays that live and die together. The zero value is ready. It is not safe for concurrent use.
type Arena struct{ regions [][]byte }

// Huge is the size from which an array gets memory of its own; smaller ones come from Go's heap.
const huge = 1 << 20

// Slice returns n zeroed elements of type T, aligned to 64 bytes at least where they are 1 MB or more.
func Slice[T Plain](a *Arena, n int) ([]T, error) {
	var t T
	size := n * int(unsafe.Sizeof(t))
	if size < huge {
		s := make([]T, n)
		a.regions = append(a.regions, Bytes(s))
		return s, nil
	}
	region, err := allocate(size)
	if err != nil {
		return nil, failure.New(failure.Internal, "no memory for %d MB: %v", size>>20, err)
	}
	a.regions = append(a.regions, region)
	return unsafe.Slice((*T)(unsafe.Pointer(&region[0])), n), nil
}

// Wipe overwrites every array with zeros.
func (a *Arena) Wipe() {
	for _, r := range a.regions {
		par.Ranges(len(r), huge, func(from, to, _ int) { clear(r[from:to]) })
	}
}

// Free wipes every array and returns the memory. The arrays must not be used afterwards.
func (a *Arena) Free() {
	a.Wipe()
	for _, r := range a.regions {
		if len(r) >= huge {
			release(r)
		}
	}
	a.regions = nil
}

// Bytes is the memory of s as bytes.
func Bytes[T Plain](s []T) []byte {
	var t T
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(t)))
}
