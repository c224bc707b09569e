/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn_news mappings FILE | names: works, and beside it in a second thread maps and unmaps a page of the file as code,
 * or changes its name, as often as it can. Of each the kernel tells whoever listens.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void churn_leaf(unsigned long n) {
  for (unsigned long i = 0; i < n; ++i) sink += i;
}

__attribute__((noinline)) void churn_outer(unsigned long n) {
  churn_leaf(n);
  sink += 1;
}

static int file = -1;

static void* change_mappings(void* none) {
  (void)none;
  for (;;) {
    void* page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED) _exit(1);
    munmap(page, 4096);
  }
}

static void* change_names(void* none) {
  (void)none;
  for (unsigned long i = 0;; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "name-%lu", i % 100000);
    if (prctl(PR_SET_NAME, name, 0, 0, 0) != 0) _exit(1);
  }
}

int main(int argc, char** argv) {
  const int names = argc == 2 && strcmp(argv[1], "names") == 0;
  if (!names && argc != 3) return 2;
  if (!names) file = open(argv[2], O_RDONLY);
  if (!names && file < 0) return 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, names ? change_names : change_mappings, NULL) != 0) return 1;
  puts("ready");
  fflush(stdout);
  for (;;) churn_outer(100000);
  return 0;
}
