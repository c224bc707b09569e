/* SPDX-License-Identifier: Apache-2.0 */
/* A file of code that is mapped by itself: NAME computes for so many rounds and calls nobody. */
__attribute__((visibility("default"))) unsigned long NAME(unsigned long rounds);

unsigned long NAME(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; i++) __asm__ volatile("" ::: "memory");
  return rounds;
}
