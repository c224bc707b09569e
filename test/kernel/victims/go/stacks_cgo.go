// SPDX-License-Identifier: Apache-2.0

// Go that calls C that calls Go, twice, as main.main > main.outer > call_go > main.middle > call_go > main.inner, all of
// which take time; main.inner also has work for the thread's stack.
package main

/*
extern void called(int depth);

static __attribute__((noinline)) void call_go(int depth) {
  for (volatile int i = 0; i < 5000; i++) {
  }
  called(depth);
  __asm__ volatile("");
}
*/
import "C"

import "runtime"

var sink int
var text = make([]byte, 10_000)

//go:noinline
func work(n int) {
	for i := 0; i < n; i++ {
		sink += i
	}
}

//go:noinline
func inner() {
	work(5000)
	sink += runtime.Stack(text, false)
}

//go:noinline
func middle() {
	work(5000)
	C.call_go(1)
}

//export called
func called(depth C.int) {
	if depth == 0 {
		middle()
	} else {
		inner()
	}
}

//go:noinline
func outer() {
	work(5000)
	C.call_go(0)
}

func main() {
	for {
		outer()
	}
}
