package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheKernelsAreWhatTheGeneratorWrites(t *testing.T) {
	for path, want := range kernels() {
		if got, err := os.ReadFile("../" + path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./... (%v)", path, err)
		}
	}
}
