// SPDX-License-Identifier: Apache-2.0

// main.outer has main.middle inlined, which has main.leaf inlined. The tests know these lines.
package main

var sink uint64

func leaf(n uint64) uint64 {
	return n*n + sink
}

func middle(n uint64) uint64 {
	return leaf(n) + 1
}

//go:noinline
func outer(n uint64) uint64 {
	v := middle(n)
	sink += v
	return v
}

//go:noinline
func alone(n uint64) uint64 {
	return n ^ sink
}

func main() {
	for i := uint64(0); i < 10; i++ {
		alone(outer(i))
	}
	generic()
}
