// SPDX-License-Identifier: Apache-2.0

// main.main > main.outer > main.middle, which is inlined into main.outer > main.leaf. names_test.cc knows the lines.
package main

var sink uint64

//go:noinline
func nobody() {}

// A leaf function has no frame, and a walk by frame pointers, the only one in a stripped program, would miss its
// caller.
//
//go:noinline
func leaf(n uint64) {
	nobody()
	for i := uint64(0); i < n; i++ {
		sink += i
	}
}

func middle(n uint64) {
	leaf(n)
	sink++
}

//go:noinline
func outer(n uint64) {
	middle(n)
	sink++
}

func main() {
	for {
		outer(5000000)
	}
}
