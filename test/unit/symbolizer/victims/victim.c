// SPDX-License-Identifier: Apache-2.0
//
// A program that prints "<name>\t<file offset in hex>" for each of its functions. It computes the offsets from their
// addresses at run time and its own /proc/self/maps, without any symbol table.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) int victim_exported(int x) { return x * 3 + 1; }
__attribute__((noinline)) static int victim_private(int x) { return victim_exported(x) + 2; }

int victim_alias(int x) __attribute__((alias("victim_exported")));
int __victim_alias_with_underscores(int x) __attribute__((alias("victim_exported")));

#if defined(__x86_64__)
// Like much hand-written assembly: neither type nor size.
__asm__(
    ".text\n"
    ".globl victim_label\n"
    "victim_label:\n"
    "  nop\n  nop\n  nop\n  nop\n  ret\n"
    ".globl victim_after_label\n"
    ".type victim_after_label, @function\n"
    "victim_after_label:\n"
    "  nop\n  ret\n"
    ".size victim_after_label, . - victim_after_label\n"
    ".globl victim_open_label\n"
    "victim_open_label:\n"
    "  nop\n  nop\n  ret\n"
    "victim_described:\n"
    "  .cfi_startproc\n"
    "  nop\n  nop\n  ret\n"
    "  .cfi_endproc\n");
void victim_label(void);
void victim_after_label(void);
void victim_open_label(void);
__attribute__((visibility("hidden"))) void victim_described(void);
#endif

static void print_place(const char* name, uintptr_t address) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    uint64_t offset = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64, &start, &end, &offset) != 3) continue;
    if (address >= start && address < end) printf("%s\t%" PRIx64 "\n", name, address - start + offset);
  }
  if (maps != NULL) fclose(maps);
}

int main(int argc, char** argv) {
  (void)argv;
  print_place("victim_exported", (uintptr_t)victim_exported);
  print_place("victim_private", (uintptr_t)victim_private);
  print_place("main", (uintptr_t)main);
#if defined(__x86_64__)
  print_place("victim_label", (uintptr_t)victim_label);
  print_place("victim_after_label", (uintptr_t)victim_after_label);
  print_place("victim_open_label", (uintptr_t)victim_open_label);
  print_place("victim_described", (uintptr_t)victim_described);
#endif
#ifdef VICTIM_PRINTS_PLT
  // Without PIC, the address of another module's function is that of its stub in this one.
  print_place("getppid@plt", (uintptr_t)getppid);
#endif
  return victim_private(argc) == -1;
}
