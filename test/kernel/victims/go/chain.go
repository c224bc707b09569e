// SPDX-License-Identifier: Apache-2.0

// main.main > main.outer > main.middle > main.work, and the same from a goroutine.
package main

var sink uint64

//go:noinline
func work(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink += i
	}
}

//go:noinline
func middle(n uint64) {
	work(n)
	sink++
}

//go:noinline
func outer(n uint64) {
	middle(n)
	sink++
}

func main() {
	for {
		outer(20000)
	}
}
