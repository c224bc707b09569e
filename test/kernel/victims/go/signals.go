// SPDX-License-Identifier: Apache-2.0

// main.main > main.outer > main.interrupted, which sends its own thread the signal with which Go's scheduler preempts,
// again and again. The handler runs on a stack of its own when the system call returns to the program.
package main

import (
	"runtime"
	"syscall"
)

var sink int

//go:noinline
func interrupted(pid, tid int) {
	for i := 0; i < 1000; i++ {
		syscall.Tgkill(pid, tid, syscall.SIGURG)
	}
	sink++
}

//go:noinline
func outer(pid, tid int) {
	interrupted(pid, tid)
	sink++
}

func main() {
	runtime.LockOSThread()
	pid, tid := syscall.Getpid(), syscall.Gettid()
	for {
		outer(pid, tid)
	}
}
