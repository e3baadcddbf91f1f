// Package usage measures what this process takes.
package usage

import (
	"syscall"
	"time"
)

// CPU is the time that all cores together spent on this process, its calls of the kernel included.
func CPU() time.Duration {
	u := rusage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMB is the most memory that was resident, in units of 2^20 bytes.
func PeakMB() float64 { return float64(rusage().Maxrss) / 1024 }

func rusage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a wrong address only
	return u
}

// Moment is when something began.
type Moment struct {
	at  time.Time
	cpu time.Duration
}

// Now is this moment.
func Now() Moment { return Moment{time.Now(), CPU()} }

// Since returns the time and the CPU time since then, in seconds.
func (m Moment) Since() (t Time) {
	return Time{time.Since(m.at).Seconds(), (CPU() - m.cpu).Seconds()}
}

// Time is how long something took, in seconds.
type Time struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
}
