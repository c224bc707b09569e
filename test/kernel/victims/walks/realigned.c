/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks through code that has aligned its stack and finds its CFA by a register. The first argument chooses how; with
 * a second one a signal interrupts it every 10 ms. Built -O3 -mavx2, with lazy binding. Runs without end.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "chain_library.h"

#define NOINLINE __attribute__((noinline, noipa))
#define MOST_SLOTS 64

static volatile unsigned long sink;

static ElfW(Addr) * slots[MOST_SLOTS];
static ElfW(Addr) unbound[MOST_SLOTS];
static size_t slot_count;

/* The places where calls through the PLT find their function. */
static int find_slots(struct dl_phdr_info* program, size_t size, void* unused) {
  const ElfW(Rela)* relocation = NULL;
  size_t bytes = 0;
  (void)size;
  (void)unused;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_JMPREL) relocation = (const ElfW(Rela)*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
  }
  for (; slot_count < bytes / sizeof(*relocation) && slot_count < MOST_SLOTS; slot_count++) {
    slots[slot_count] = (ElfW(Addr)*)(program->dlpi_addr + relocation[slot_count].r_offset);
    unbound[slot_count] = *slots[slot_count];
  }
  return 1; /* the program is the first */
}

/* Each call is a first call: the dynamic linker looks the function up. */
NOINLINE static void bind_lazily(void) {
  for (int i = 0; i < 1000; i++) {
    for (size_t slot = 0; slot < slot_count; slot++) *slots[slot] = unbound[slot];
    sink += (unsigned long)library_does_nothing(i);
  }
}

typedef float Vector __attribute__((vector_size(32)));

/* A vector on the stack, and a size that is known only at run time. */
NOINLINE static float with_vectors(int depth, int size) {
  volatile Vector vector = {(float)depth, (float)size};
  volatile char buffer[size];
  buffer[0] = 1;
  const float inner = depth == 0 ? 0 : with_vectors(depth - 1, size);
  return vector[0] + buffer[0] + inner;
}

NOINLINE static void use_vectors(void) {
  for (int i = 0; i < 1000; i++) sink += (unsigned long)with_vectors(20, 8 + i % 64);
}

/* Stays where with_vectors() is for a moment only: the stack is aligned, and r10 alone has the CFA. */
void spin_in_prologue(unsigned long rounds);
__asm__(
    ".text\n"
    ".type spin_in_prologue, @function\n"
    "spin_in_prologue:\n"
    ".cfi_startproc\n"
    "lea 8(%rsp), %r10\n"
    ".cfi_def_cfa r10, 0\n"
    "and $-64, %rsp\n"
    "1: dec %rdi\n"
    "jnz 1b\n"
    "lea -8(%r10), %rsp\n"
    ".cfi_def_cfa rsp, 8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size spin_in_prologue, . - spin_in_prologue\n");

NOINLINE static void stay_in_prologue(void) {
  spin_in_prologue(200000);
  sink = 0;
}

NOINLINE static void in_handler(void) {
  for (unsigned long i = 0; i < 2000000; i++) sink += i;
}

static void handler(int number) {
  (void)number;
  in_handler();
  sink = 0;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  dl_iterate_phdr(find_slots, NULL);
  if (!__builtin_cpu_supports("avx2")) {
    puts("no AVX2");
    return 0;
  }
  if (argc > 2) {
    const struct sigaction action = {.sa_handler = handler};
    const struct itimerval every = {{0, 10000}, {0, 10000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
  }
  for (;;) {
    if (!strcmp(how, "binding"))
      bind_lazily();
    else if (!strcmp(how, "vectors"))
      use_vectors();
    else if (!strcmp(how, "prologue"))
      stay_in_prologue();
    else
      return 2;
    sink = 0;
  }
}
