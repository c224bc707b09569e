// SPDX-License-Identifier: Apache-2.0
//
// load SECONDS: sorts, counts and sums.
package main

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"
)

func next(state *uint32) uint32 {
	*state ^= *state << 13
	*state ^= *state >> 17
	*state ^= *state << 5
	return *state
}

//go:noinline
func sorted(numbers []int, state *uint32) int {
	for i := range numbers {
		numbers[i] = int(next(state))
	}
	sort.Ints(numbers)
	return numbers[len(numbers)/2]
}

//go:noinline
func count(numbers []int) int {
	counts := map[string]int{}
	for _, number := range numbers {
		counts[strconv.Itoa(number%512)]++
	}
	sum := 0
	for key, value := range counts {
		sum += len(key) * value
	}
	return sum
}

//go:noinline
func mix(numbers []int) float64 {
	sum := 0.0
	for i, number := range numbers {
		sum += math.Sqrt(float64(number)) * math.Sin(float64(i))
	}
	return sum
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	numbers := make([]int, 20000)
	state := uint32(1)
	sum := 0.0
	for time.Now().Before(end) {
		sum += float64(sorted(numbers, &state)+count(numbers)) + mix(numbers)
	}
	fmt.Println(sum)
}
