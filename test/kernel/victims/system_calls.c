/* SPDX-License-Identifier: Apache-2.0 */
/* Lives in a system call: main > read_zeros > (read) > kernel, which clears a large buffer. */
#include <fcntl.h>
#include <sys/syscall.h>

#include "frame.h"

static char buffer[4 << 20];
static volatile long result;

/* The system call itself, so that no library without frame pointers is in between. */
static long raw_read(int fd, void* to, unsigned long size) {
  long out;
#if defined(__x86_64__)
  __asm__ volatile("syscall" : "=a"(out) : "a"(SYS_read), "D"(fd), "S"(to), "d"(size) : "rcx", "r11", "memory");
#else
  register long x8 __asm__("x8") = SYS_read;
  register long x0 __asm__("x0") = fd;
  register long x1 __asm__("x1") = (long)to;
  register long x2 __asm__("x2") = (long)size;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  out = x0;
#endif
  return out;
}

NOINLINE static void read_zeros(int fd) {
  call_nobody();
  result = raw_read(fd, buffer, sizeof(buffer));
  result = 0;
}

int main(void) {
  const int fd = open("/dev/zero", O_RDONLY);
  for (;;) read_zeros(fd);
}
