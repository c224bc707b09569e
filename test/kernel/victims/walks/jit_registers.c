/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main > outer > middle > jit > jit: x86-64 code without a file that uses the frame pointer as any other register, as
 * some just-in-time compilers do. Ends after as many milliseconds of CPU time as its argument says. With a second
 * argument it leaves the return address of an earlier indirect call on the stack, in the frame of the code.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define NOINLINE __attribute__((noinline, noipa))

static volatile unsigned long sink;

/* push rbp; push rbx; sub rsp, 72; mov rbp, 305419896; again: sub rdi, 1; jnz again; add rsp, 72; pop rbx; pop rbp; ret
 */
static const char kWork[] =
    "\x55\x53\x48\x83\xec\x48\x48\xc7\xc5\x78\x56\x34\x12\x48\x83\xef\x01\x75\xfa\x48\x83\xc4\x48\x5b\x5d\xc3";
/* push rbp; sub rsp, 32; mov ebp, 7; call work, which is 64 bytes before; add rsp, 32; pop rbp; ret */
static const char kCaller[] = "\x55\x48\x83\xec\x20\xbd\x07\x00\x00\x00\xe8\xb1\xff\xff\xff\x48\x83\xc4\x20\x5d\xc3";

typedef void Work(uint64_t rounds);

NOINLINE static void middle(Work* work) {
  work(1000000);
  sink = 0;
}

NOINLINE static void outer(Work* work) {
  middle(work);
  sink = 0;
}

NOINLINE static void innocent(void) { sink = 1; }

NOINLINE static void caller_of_any(void (*callee)(void)) {
  callee();
  sink = 2;
}

NOINLINE static void earlier(void) {
  caller_of_any(innocent);
  sink = 3;
}

static long used_ms(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000;
}

int main(int argc, char** argv) {
  const long limit_ms = argc > 1 ? atol(argv[1]) : 0;
  unsigned char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, kWork, sizeof kWork - 1);
  memcpy(code + 64, kCaller, sizeof kCaller - 1);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  Work* work = NULL;
  unsigned char* const caller = code + 64;
  memcpy(&work, &caller, sizeof work);
  for (;;) {
    if (argc > 2) earlier();
    outer(work);
    if (limit_ms > 0 && used_ms() >= limit_ms) return 0;
  }
}
