/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_files LIST: maps every file named in LIST as code, prints how many, and then computes without end, as if
 * called from one file after the other: a walk of its stack reaches that file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_FILES = 1000, STACK_BYTES = 65536 };
/* One sample, and the time after which rows of large code are worth building: 8 ns for each byte. */
#define LEAST_NS 15e6
#define NS_PER_BYTE 10.0

static struct {
  uintptr_t start;
  double ns;
} files[MOST_FILES];
static int count;
static double until_ns;
static volatile unsigned long sink;
static ucontext_t here, there;
static char stack[STACK_BYTES];

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Never returns: its return address is made up. */
static void spin(void) {
  while (cpu_ns() < until_ns) {
    for (unsigned long i = 0; i < 100000; i++) sink += i;
  }
  swapcontext(&there, &here);
}

static void visit(uintptr_t caller, double ns) {
  until_ns = cpu_ns() + ns;
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof(stack);
  there.uc_link = NULL;
  makecontext(&there, spin, 0);
#if defined(__x86_64__)
  *(uintptr_t*)there.uc_mcontext.gregs[REG_RSP] = caller;
#elif defined(__aarch64__)
  there.uc_mcontext.regs[30] = caller;
#endif
  swapcontext(&here, &there);
}

int main(int argc, char** argv) {
  FILE* list = argc > 1 ? fopen(argv[1], "r") : NULL;
  char path[4096];
  if (!list) return 2;
  while (count < MOST_FILES && fgets(path, sizeof(path), list)) {
    path[strcspn(path, "\n")] = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void* start = MAP_FAILED;
    if (file < 0) continue;
    if (fstat(file, &status) == 0 && status.st_size > 0)
      start = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    close(file);
    if (start == MAP_FAILED) continue;
    files[count].start = (uintptr_t)start;
    files[count++].ns = LEAST_NS + NS_PER_BYTE * (double)status.st_size;
  }
  fclose(list);
  printf("%d\n", count);
  fflush(stdout);
  for (;;) {
    for (int i = 0; i < count; i++) visit(files[i].start + 64, files[i].ns);
    if (count == 0) pause();
  }
}
