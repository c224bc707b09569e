// SPDX-License-Identifier: Apache-2.0

package main

//go:noinline
func largest[T uint64 | float64](values []T) T {
	var found T
	for _, value := range values {
		if value > found {
			found = value
		}
	}
	return found
}

func generic() {
	sink += largest([]uint64{1, 2, 3})
	sink += uint64(largest([]float64{1, 2, 3}))
}
