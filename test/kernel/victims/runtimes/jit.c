/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main > jit outer > jit;<b>middle > jit_work: code without a file, generated here and named in a perf map. The
 * functions keep frame pointers. With an argument, the program ends after that many milliseconds of CPU time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kFunctionBytes = 64, kFunctions = 3 };

static unsigned char* put(unsigned char* at, const void* bytes, size_t count) {
  memcpy(at, bytes, count);
  return at + count;
}

/* push rbp; mov rbp, rsp */
static unsigned char* put_begin(unsigned char* at) { return put(at, "\x55\x48\x89\xe5", 4); }
/* pop rbp; ret */
static unsigned char* put_end(unsigned char* at) { return put(at, "\x5d\xc3", 2); }

static void put_work(unsigned char* at) {
  const uint32_t rounds = 1000000;
  at = put_begin(at);
  at = put(at, "\xb9", 1); /* mov ecx, rounds */
  at = put(at, &rounds, sizeof rounds);
  at = put(at, "\xff\xc9\x75\xfc", 4); /* again: dec ecx; jnz again */
  put_end(at);
}

static void put_caller(unsigned char* at, const unsigned char* callee) {
  const uint64_t target = (uint64_t)callee;
  at = put_begin(at);
  at = put(at, "\x48\xb8", 2); /* mov rax, target */
  at = put(at, &target, sizeof target);
  at = put(at, "\xff\xd0", 2); /* call rax */
  put_end(at);
}

int main(int argc, char** argv) {
  const long limit_ms = argc > 1 ? atol(argv[1]) : 0;
  const size_t bytes = kFunctions * kFunctionBytes;
  unsigned char* code = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  unsigned char* const work = code;
  unsigned char* const middle = work + kFunctionBytes;
  unsigned char* const outer = middle + kFunctionBytes;
  put_work(work);
  put_caller(middle, work);
  put_caller(outer, middle);
  if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) return 1;

  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "w");
  if (map == NULL) return 1;
  fprintf(map, "%lx %x jit_work\n", (unsigned long)work, kFunctionBytes);
  fprintf(map, "0x%lx 0x%x jit;<b>middle\n", (unsigned long)middle, kFunctionBytes);
  fprintf(map, "this line is damaged\n");
  fprintf(map, "%lx %x jit outer\n", (unsigned long)outer, kFunctionBytes);
  fclose(map);

  void (*run)(void);
  memcpy(&run, &outer, sizeof run);
  for (;;) {
    run();
    if (limit_ms > 0 && clock() * 1000L / CLOCKS_PER_SEC >= limit_ms) return 0;
  }
}
