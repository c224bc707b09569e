/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works for a moment and then execs the next program on its command line: churn_program ROUNDS PROGRAM... Not
 * position-independent, so that all are at the same addresses, and without a C library, whose start takes longer than
 * the exec.
 */
#include <sys/syscall.h>

#include "churn_chain.h"

static long system_call(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

/* The kernel's stack of a new program: argc, the arguments, NULL, the environment, NULL. */
__attribute__((used, noreturn)) void begin(long* stack) {
  const long count = stack[0];
  char** arguments = (char**)(stack + 1);
  char** environment = arguments + count + 1;
  unsigned long rounds = 0;
  for (const char* digit = arguments[1]; *digit; digit++) rounds = rounds * 10 + (unsigned long)(*digit - '0');
  OUTER(rounds);
  if (count > 2) {
    char* program = arguments[2];
    arguments[2] = arguments[1];
    arguments[1] = program;
    system_call(SYS_execve, (long)program, (long)(arguments + 1), (long)environment);
  }
  for (;;) system_call(SYS_exit_group, count > 2, 0, 0);
}

#if defined(__x86_64__)
__asm__(
    ".globl _start; .type _start, @function; _start: .cfi_startproc; .cfi_undefined rip;"
    "mov %rsp, %rdi; and $-16, %rsp; call begin; hlt; .cfi_endproc; .size _start, . - _start");
#else
__asm__(
    ".globl _start; .type _start, %function; _start: .cfi_startproc; .cfi_undefined x30;"
    "mov x0, sp; bl begin; brk 0; .cfi_endproc; .size _start, . - _start");
#endif
