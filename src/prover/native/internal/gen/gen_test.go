package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCompiledKernelsComeFromThisGenerator(t *testing.T) {
	for path, want := range kernels() {
		if got, err := os.ReadFile("../" + path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./... (%v)", path, err)
		}
	}
}

func TestAFileIsReplacedWholeAndOnlyIfItDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.s")
	for _, content := range []string{"a", "bb"} {
		if err := replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, want %q (%v)", got, content, err)
		}
	}
	before, _ := os.Stat(path)
	if err := replace(path, []byte("bb")); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(path)
	if !os.SameFile(before, after) {
		t.Error("an up-to-date file was replaced")
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
		t.Errorf("%d files are left, want 1", len(names))
	}
}
