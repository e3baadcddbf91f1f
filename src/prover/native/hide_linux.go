package main

import "syscall"

const prSetDumpable = 4 // PR_SET_DUMPABLE of prctl(2)

// hideMemory keeps this process' memory out of core dumps and from other processes of the same user, as far as the
// kernel lets it.
func hideMemory() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0)
}
