//go:build !amd64

package fft

// New prepares the fastest transform that this processor has.
func New(n int) (Domain, error) { return NewLibrary(n) }
