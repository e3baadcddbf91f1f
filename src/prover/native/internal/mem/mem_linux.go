package mem

import "syscall"

const (
	hugePage  = 2 << 20
	madvDump  = 16 // MADV_DONTDUMP
	madvForks = 10 // MADV_DONTFORK
)

// allocate maps anonymous memory. It ignores errors of madvise: a kernel without huge pages provides small ones.
func allocate(size int) ([]byte, error) {
	region, err := syscall.Mmap(-1, 0, (size+hugePage-1)&^(hugePage-1),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(region, syscall.MADV_HUGEPAGE)
	_ = syscall.Madvise(region, madvDump)
	_ = syscall.Madvise(region, madvForks)
	return region, nil
}

func release(region []byte) { _ = syscall.Munmap(region) }
