package iden3

import (
	"io"
	"os"

	"sui-enclave/prover/internal/failure"
)

// WithFile opens a regular file and passes it to use, with its size. If it can't be opened, the error has this code.
func WithFile(path string, code failure.Code, use func(f io.ReaderAt, size int64) error) error {
	info, err := os.Stat(path) // before opening, which would wait for a pipe's other end
	if err != nil {
		return failure.New(code, "%v", err)
	}
	if !info.Mode().IsRegular() {
		return failure.New(code, "%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return failure.New(code, "%v", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return failure.New(code, "%v", err)
	}
	return use(f, info.Size())
}
