/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forged_rows KIND: works in a function with false unwind information. On x86-64.
 *   itself     its caller's frame is its own: a walk that believes it never ends
 *   elsewhere its callers are in memory that is no stack, one after the other without end
 *   kernel     they stand where user space has no memory
 *   nowhere    its caller is at another address each time, where no code is
 *   program    its frame is found by a program that reads memory
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noipa, noclone))

#define ROUNDS 20000000 /* some milliseconds */

static volatile unsigned long sink;

/* The rows below find the frame by this register. */
static inline void work(const void* r15) {
  __asm__ volatile(
      "movq %0, %%r15\n"
      "movl %1, %%ecx\n"
      "1: decl %%ecx\n"
      "jnz 1b\n" ::"r"(r15),
      "i"(ROUNDS)
      : "rcx", "r15");
  sink += 1;
}

NOINLINE static void itself(const void* at) {
  __asm__ volatile(".cfi_remember_state\n.cfi_def_cfa 15, 0\n.cfi_offset 16, 8\n.cfi_undefined 6\n");
  work(at);
  __asm__ volatile(".cfi_restore_state\n");
}

NOINLINE static void elsewhere(const void* at) {
  __asm__ volatile(".cfi_remember_state\n.cfi_def_cfa 15, 16\n.cfi_offset 16, -8\n.cfi_val_offset 15, 0\n");
  work(at);
  __asm__ volatile(".cfi_restore_state\n");
}

NOINLINE static void by_program(const void* at) {
  /* DW_CFA_def_cfa_expression: r15, dereferenced, dereferenced */
  __asm__ volatile(".cfi_remember_state\n.cfi_escape 0x0f, 4, 0x7f, 0, 0x06, 0x06\n");
  work(at);
  __asm__ volatile(".cfi_restore_state\n");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const size_t bytes = 64UL << 20;
  unsigned long* forged = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (forged == MAP_FAILED) return 1;
  const unsigned long callee = (unsigned long)elsewhere + 20;
  for (size_t i = 0; i < bytes / sizeof(*forged); ++i) forged[i] = callee;
  puts("ready");
  fflush(stdout);
  const int is_nowhere = !strcmp(argv[1], "nowhere");
  volatile unsigned long higher[1024]; /* on the stack, above its callees' frames */
  for (size_t i = 0; i < 1024; ++i) higher[i] = (unsigned long)&higher[i];
  for (size_t round = 0;; ++round) {
    if (is_nowhere)
      elsewhere((const void*)&higher[round % 1000]);
    else if (!strcmp(argv[1], "itself"))
      itself(forged);
    else if (!strcmp(argv[1], "elsewhere"))
      elsewhere(forged);
    else if (!strcmp(argv[1], "kernel"))
      elsewhere((const void*)0xffffffff81000000UL);
    else if (!strcmp(argv[1], "program"))
      by_program(forged);
    else
      return 2;
  }
}
