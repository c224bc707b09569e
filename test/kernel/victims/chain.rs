// SPDX-License-Identifier: Apache-2.0
// main > outer > middle > work, in Rust as cargo builds releases: optimised, without frame pointers.
use std::hint::black_box;

#[inline(never)]
fn work(n: u64) -> u64 {
    let mut sum = 0;
    for i in 0..n {
        sum = black_box(sum + i);
    }
    sum
}

#[inline(never)]
fn middle(n: u64) -> u64 {
    black_box(work(n)) + 1
}

#[inline(never)]
fn outer(n: u64) -> u64 {
    black_box(middle(n)) + 1
}

fn main() {
    loop {
        black_box(outer(black_box(20_000)));
    }
}
