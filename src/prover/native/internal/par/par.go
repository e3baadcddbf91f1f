// Package par splits work into tasks and runs them on every core.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers is read only once, at the start, since scratch memory is allocated for this number of workers.
var workers = runtime.GOMAXPROCS(0)

// Workers returns the number of tasks that can run at the same time.
func Workers() int { return workers }

// Do runs task(i, worker) for each i below n and returns when all have ended. Tasks with the same worker number
// (below Workers()) never overlap, so that a worker's scratch memory needs no lock.
func Do(n int, task func(i, worker int)) {
	needed := min(n, workers)
	if needed <= 1 {
		for i := range n {
			task(i, 0)
		}
		return
	}
	var next atomic.Int64
	run := func(worker int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			task(i, worker)
		}
	}
	var helpers sync.WaitGroup
	for worker := 1; worker < needed; worker++ {
		helpers.Add(1)
		go func() {
			defer helpers.Done()
			run(worker)
		}()
	}
	run(0)
	helpers.Wait()
}

// Ranges runs task(from, to, worker) over [0, n) in parts of at most size.
func Ranges(n, size int, task func(from, to, worker int)) {
	Do((n+size-1)/size, func(i, worker int) {
		task(i*size, min((i+1)*size, n), worker)
	})
}

// Try runs task like Do and returns one of the errors, if there are any. After an error it starts no more tasks.
func Try(n int, task func(i, worker int) error) error {
	var failed atomic.Pointer[error]
	Do(n, func(i, worker int) {
		if failed.Load() != nil {
			return
		}
		if err := task(i, worker); err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
