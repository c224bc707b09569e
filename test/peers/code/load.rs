// SPDX-License-Identifier: Apache-2.0
//
// load SECONDS: sorts, counts and sums, by iterators and generic functions that are inlined.
use std::collections::HashMap;
use std::time::{Duration, Instant};

fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

#[inline(never)]
fn sort(numbers: &mut [u32], state: &mut u32) -> u32 {
    numbers.iter_mut().for_each(|number| *number = next(state));
    numbers.sort();
    numbers[numbers.len() / 2]
}

#[inline(never)]
fn count(numbers: &[u32]) -> u64 {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for number in numbers {
        *counts.entry((number % 512).to_string()).or_default() += 1;
    }
    counts.iter().map(|(key, value)| key.len() as u64 * value).sum()
}

#[inline(never)]
fn mix(numbers: &[u32]) -> f64 {
    numbers.iter().zip(numbers.iter().rev()).map(|(a, b)| (f64::from(*a) * f64::from(*b)).sqrt()).filter(|root| *root > 1.0).sum()
}

fn main() {
    let seconds = std::env::args().nth(1).unwrap().parse().unwrap();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut numbers = vec![0; 20_000];
    let mut state = 1;
    let mut sum = 0.0;
    while Instant::now() < end {
        sum += f64::from(sort(&mut numbers, &mut state)) + count(&numbers) as f64;
        sum += (0..20).map(|_| mix(&numbers)).sum::<f64>();
    }
    println!("{sum}");
}
