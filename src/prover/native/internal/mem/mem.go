// Package mem allocates large arrays outside Go's heap. They are zeroed. The caller decides when they are wiped and
// returned. They lie on huge pages where the kernel has them: the products read points in random order, and each such
// read would cost a TLB miss on small pages.
package mem

import (
	"unsafe"

	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/par"
)

// Plain is the constraint of types that contain no Go pointers. The garbage collector doesn't scan the arrays of this
// package.
type Plain any

// Arena owns arrays that are freed together. Its zero value is ready for use. It is not safe for concurrent use.
type Arena struct{ regions [][]byte }

// huge is the size in bytes from which allocate provides the memory of an array. Smaller arrays come from Go's heap.
const huge = 1 << 20

// Slice returns n zeroed elements of type T. An array of 1 MB or more is aligned to at least 64 bytes.
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
		return nil, failure.New(failure.Internal, "could not allocate %d MB of memory: %v", size>>20, err)
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

// Bytes returns the memory of s as bytes.
func Bytes[T Plain](s []T) []byte {
	var t T
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(t)))
}
