// SPDX-License-Identifier: Apache-2.0

// Goroutines whose code runs on other stacks: on the thread's for the runtime's own work, and while their stack grows.
// Prints for each, as "chain NAME;NAME...", its callers as the runtime knows them, from the outermost on, its root and
// the function that changes the stack among them.
package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

var sink int

//go:noinline
func chain() string {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	names := []string{}
	for {
		frame, more := frames.Next()
		names = append([]string{frame.Function}, names...)
		if !more {
			return "chain " + strings.Join(names, ";")
		}
	}
}

var chains = make(chan string, 10)

// The runtime writes the stack on the thread's stack.
//
//go:noinline
func trace(text []byte, show bool) {
	if show {
		chains <- chain()
	}
	sink += runtime.Stack(text, false)
}

//go:noinline
func allocate(show bool) []byte {
	if show {
		chains <- chain()
	}
	memory := make([]byte, 100_000)
	sink++
	return memory
}

//go:noinline
func clock(show bool) {
	if show {
		chains <- chain()
	}
	for i := 0; i < 100; i++ {
		sink += time.Now().Nanosecond()
	}
}

//go:noinline
func descend(depth int) int {
	var room [64]int
	if depth == 0 {
		return room[sink&1]
	}
	room[depth&63] = descend(depth-1) + 1
	return room[depth&63]
}

// A new goroutine's stack is small, and is copied each time that it grows.
//
//go:noinline
func grow(show bool) {
	if show {
		chains <- chain()
	}
	sink += descend(40)
}

//go:noinline
func tracing() {
	text := make([]byte, 10_000)
	trace(text, true)
	for {
		trace(text, false)
	}
}

var kept [64][]byte

//go:noinline
func allocating() {
	allocate(true)
	for i := 0; ; i++ {
		kept[i&63] = allocate(false)
	}
}

//go:noinline
func asking() {
	clock(true)
	for {
		clock(false)
	}
}

var done = make(chan bool)
var isFirst = true

// Without arguments: the runtime leaves out the function that the compiler makes to pass them.
//
//go:noinline
func growing() {
	grow(isFirst)
	isFirst = false
	done <- true
}

func main() {
	go tracing()
	go allocating()
	go asking()
	go growing()
	<-done
	for i := 0; i < 4; i++ {
		fmt.Println(<-chains)
	}
	for {
		go growing()
		<-done
	}
}
