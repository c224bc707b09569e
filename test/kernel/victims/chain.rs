// SPDX-License-Identifier: Apache-2.0
// main > outer > middle > work, in Rust as cargo builds releases: optimised, without frame pointers.

/// Opaque to the compiler. (std::hint::black_box exists since Rust 1.66, and Debian 12 has 1.63.)
#[inline(always)]
fn opaque(n: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&n) }
}

#[inline(never)]
fn work(n: u64) -> u64 {
    let mut sum = 0;
    for i in 0..n {
        sum = opaque(sum + i);
    }
    sum
}

#[inline(never)]
fn middle(n: u64) -> u64 {
    opaque(work(n)) + 1
}

#[inline(never)]
fn outer(n: u64) -> u64 {
    opaque(middle(n)) + 1
}

fn main() {
    loop {
        opaque(outer(opaque(20_000)));
    }
}
