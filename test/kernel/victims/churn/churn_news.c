/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn_news mappings FILE | names | forks: works, and in a second thread, as often as it can, maps and unmaps a page
 * of the file as code, or changes its name, or forks children that change theirs. Each is a side-band event.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

static void change_name(unsigned long i) {
  char name[16];
  snprintf(name, sizeof(name), "name-%lu", i % 100000);
  if (prctl(PR_SET_NAME, name, 0, 0, 0) != 0) _exit(1);
}

static void* change_names(void* none) {
  (void)none;
  for (unsigned long i = 0;; ++i) change_name(i);
  return NULL;
}

static void* change_names_of_children(void* none) {
  (void)none;
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      for (unsigned long i = 0; i < 5000; ++i) change_name(i);
      _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) _exit(1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  void* (*change)(void*) = NULL;
  if (argc == 3 && strcmp(argv[1], "mappings") == 0) change = change_mappings;
  if (argc == 2 && strcmp(argv[1], "names") == 0) change = change_names;
  if (argc == 2 && strcmp(argv[1], "forks") == 0) change = change_names_of_children;
  if (change == NULL) return 2;
  if (change == change_mappings && (file = open(argv[2], O_RDONLY)) < 0) return 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, change, NULL) != 0) return 1;
  puts("ready");
  fflush(stdout);
  for (;;) churn_outer(100000);
  return 0;
}
