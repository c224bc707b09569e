/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn_driver SECONDS WORKERS EXECS ROUNDS PROGRAM...: each worker starts processes one after the other, each of which
 * execs the programs in turn, EXECS times in all. Prints the number of execs.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const double end = seconds() + atof(argv[1]);
  const int workers = atoi(argv[2]);
  const int execs = atoi(argv[3]);
  const int programs = argc - 5;
  char** arguments = calloc((size_t)execs + 3, sizeof(char*));
  long started = 0;
  int running = 0;
  while (seconds() < end || running > 0) {
    if (running < workers && seconds() < end) {
      for (int i = 0; i < execs; i++) {
        char* program = argv[5 + (started + i) % programs];
        if (i == 0)
          arguments[0] = program;
        else
          arguments[i + 1] = program;
      }
      arguments[1] = argv[4];
      pid_t pid;
      if (posix_spawn(&pid, arguments[0], NULL, NULL, arguments, environ) != 0) return 1;
      started++;
      running++;
      continue;
    }
    int status;
    if (wait(&status) < 0 || status != 0) return 1;
    running--;
  }
  printf("%ld\n", started * execs);
  return 0;
}
