// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
package main

import "fmt"

func main() {
	table := map[int]int{}
	results := make(chan int)
	for i := 0; i < 8; i++ {
		go func(n int) {
			sum := 0
			for k := 0; k < 200000; k++ {
				sum = sum*31 + k%(n+1)
			}
			results <- sum
		}(i)
	}
	order := 0
	for i := 0; i < 8; i++ {
		order = order*31 + <-results
		table[order] = i
	}
	for key := range table {
		order = order*31 + key
	}
	fmt.Println(order)
}
