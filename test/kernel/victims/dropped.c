/* SPDX-License-Identifier: Apache-2.0 */
/* dropped USER HOW: starts as root and becomes USER without an exec, so it is not dumpable ("stays"). Or it makes
 * itself dumpable again ("tells"), or it executes a program ("runs": itself, with "again"), which may make itself
 * non-dumpable ("refuses"). Then main > secret_outer > secret_work. Prints its state. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void secret_work(void) {
  for (unsigned long i = 0; i < 100000; i++) sink += i;
}

__attribute__((noinline)) static void secret_outer(void) {
  secret_work();
  sink = 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* how = argv[2];
  const unsigned id = (unsigned)atol(argv[1]);
  if (strncmp(how, "again", 5) != 0) {
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) return 3;
    if (strcmp(how, "runs") == 0) execl("/proc/self/exe", argv[0], argv[1], "again", (char*)NULL);
    if (strcmp(how, "refuses") == 0) execl("/proc/self/exe", argv[0], argv[1], "again-refuses", (char*)NULL);
    if (strcmp(how, "tells") == 0 && prctl(PR_SET_DUMPABLE, 1) != 0) return 4;
  } else if (strcmp(how, "again-refuses") == 0 && prctl(PR_SET_DUMPABLE, 0) != 0) {
    return 4;
  }
  printf("%d\n", prctl(PR_GET_DUMPABLE));
  fflush(stdout);
  for (;;) secret_outer();
}
