package par

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestEveryTaskRunsOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		ran := make([]atomic.Int32, n)
		Do(n, func(i, worker int) {
			if worker < 0 || worker >= Workers() {
				t.Error("worker", worker)
			}
			ran[i].Add(1)
		})
		for i := range ran {
			if ran[i].Load() != 1 {
				t.Fatalf("task %d of %d ran %d times", i, n, ran[i].Load())
			}
		}
	}
}

func TestRangesCoverEverythingOnce(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 100} {
		var sum atomic.Int64
		Ranges(n, 10, func(from, to, _ int) {
			if to-from > 10 || to <= from {
				t.Error(from, to)
			}
			sum.Add(int64(to - from))
		})
		if sum.Load() != int64(n) {
			t.Fatal(n, sum.Load())
		}
	}
}

func TestTasksOfOneWorkerNeverOverlap(t *testing.T) {
	busy := make([]atomic.Bool, Workers())
	Do(1000, func(_, worker int) {
		if busy[worker].Swap(true) {
			t.Error("two tasks of one worker run at the same time")
		}
		busy[worker].Store(false)
	})
}

func TestTryReturnsAnError(t *testing.T) {
	wrong := errors.New("wrong")
	if err := Try(100, func(i, _ int) error {
		if i == 50 {
			return wrong
		}
		return nil
	}); !errors.Is(err, wrong) {
		t.Fatal(err)
	}
	if err := Try(100, func(int, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
}
