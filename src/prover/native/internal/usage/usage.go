// Package usage measures the time and memory that this process takes.
package usage

import (
	"syscall"
	"time"
)

// CPU returns the time that all cores together spent on this process, including its system calls.
func CPU() time.Duration {
	u := rusage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMB returns the peak of the resident memory so far, in units of 2^20 bytes.
func PeakMB() float64 { return float64(rusage().Maxrss) / 1024 }

func rusage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for a wrong address
	return u
}

// Moment is a point in time, with the CPU time that the process had used up to that point.
type Moment struct {
	at  time.Time
	cpu time.Duration
}

// Now returns the current Moment.
func Now() Moment { return Moment{time.Now(), CPU()} }

// Since returns the time and the CPU time that have passed since m.
func (m Moment) Since() (t Time) {
	return Time{time.Since(m.at).Seconds(), (CPU() - m.cpu).Seconds()}
}

// Time is a duration, measured by the clock and in CPU time, both in seconds.
type Time struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}
