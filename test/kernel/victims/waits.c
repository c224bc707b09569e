/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait in a known way for the given number of seconds: waits KIND SECONDS. At its end each prints a line
 * with its tid and, in nanoseconds, how long it waited and stood in run queues by the kernel's account, and how much of
 * the waiting was sleep that it asked for. Then the program prints "end" and waits to be ended.
 *
 *   sleeps   one thread: nanosleep for 3 ms, poll for 7 ms. Only the former counts as sleep
 *   mutex    one of four threads holds a mutex 8 of 10 ms, the others take it in turns and sleep for 1 ms in between.
 *            The first one is called "holder", and prints no line
 *   pipe     two threads send each other a byte and compute a little; they share a CPU
 *   starved  four threads that compute on one CPU
 *   fsync    one thread: writes a page to a file of the current folder, and fsync
 *   faults   one thread: reads the pages of a file of the current folder that are not in memory
 *   pool     three threads wait for work in epoll_wait, one of them gets some every 10 ms
 *   workers  four threads of a pool: one is called "busy" and computes, the others wait for work with a condition
 * variable
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long end_ns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2][2];

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* For how long it slept: the timer's slack is a tenth of a millisecond. */
static long long sleep_ms(long ms) {
  const struct timespec time = {0, ms * 1000000};
  const long long began_ns = now_ns();
  nanosleep(&time, NULL);
  return now_ns() - began_ns;
}

struct account {
  long long began_ns;
  long long slept_ns;
};

static void tell(const struct account* account) {
  unsigned long long run_ns = 0;
  unsigned long long queued_ns = 0;
  const long long all_ns = now_ns() - account->began_ns;
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  if (!file || fscanf(file, "%llu %llu", &run_ns, &queued_ns) != 2) exit(1);
  fclose(file);
  printf("%ld %lld %llu %lld\n", syscall(SYS_gettid), all_ns - (long long)(run_ns + queued_ns), queued_ns,
         account->slept_ns);
  fflush(stdout);
}

static void stay_on_one_cpu(void) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void* sleeps(void* unused) {
  struct account account = {now_ns(), 0};
  (void)unused;
  while (now_ns() < end_ns) {
    account.slept_ns += sleep_ms(3);
    poll(NULL, 0, 7);
  }
  tell(&account);
  return NULL;
}

static void* hold(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "holder");
  while (now_ns() < end_ns) {
    pthread_mutex_lock(&mutex);
    sleep_ms(8);
    pthread_mutex_unlock(&mutex);
    sleep_ms(2);
  }
  return NULL;
}

static void* want(void* unused) {
  struct account account = {now_ns(), 0};
  (void)unused;
  while (now_ns() < end_ns) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    account.slept_ns += sleep_ms(1);
  }
  tell(&account);
  return NULL;
}

static void* send_back(void* number) {
  const struct account account = {now_ns(), 0};
  const long side = (long)number;
  char byte = 0;
  stay_on_one_cpu();
  while (now_ns() < end_ns) {
    if (write(pipes[side][1], &byte, 1) != 1) break;
    if (read(pipes[1 - side][0], &byte, 1) != 1) break;
    for (volatile int i = 0; i < 100000; i++) {
    }
  }
  close(pipes[side][1]);
  tell(&account);
  return NULL;
}

static void* compute(void* unused) {
  const struct account account = {now_ns(), 0};
  (void)unused;
  stay_on_one_cpu();
  while (now_ns() < end_ns) {
    for (volatile int i = 0; i < 100000; i++) {
    }
  }
  tell(&account);
  return NULL;
}

static int open_file(void) {
  char name[] = "waits.XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) exit(1);
  unlink(name);
  return file;
}

static void* sync_file(void* unused) {
  const struct account account = {now_ns(), 0};
  static char page[4096];
  const int file = open_file();
  (void)unused;
  while (now_ns() < end_ns) {
    if (pwrite(file, page, sizeof(page), 0) != sizeof(page) || fsync(file)) exit(1);
  }
  tell(&account);
  return NULL;
}

static void* fault(void* unused) {
  enum { kBytes = 16 << 20, kPage = 4096 };
  static char block[1 << 20];
  const int file = open_file();
  volatile char sum = 0;
  (void)unused;
  memset(block, 1, sizeof(block));
  for (int i = 0; i < kBytes / (int)sizeof(block); i++) {
    if (write(file, block, sizeof(block)) != sizeof(block)) exit(1);
  }
  fsync(file);
  const char* memory = mmap(NULL, kBytes, PROT_READ, MAP_SHARED, file, 0);
  madvise((void*)memory, kBytes, MADV_RANDOM);
  const struct account account = {now_ns(), 0};
  while (now_ns() < end_ns) {
    madvise((void*)memory, kBytes, MADV_DONTNEED);
    posix_fadvise(file, 0, kBytes, POSIX_FADV_DONTNEED);
    for (int at = 0; at < kBytes && now_ns() < end_ns; at += kPage) sum += memory[at];
  }
  tell(&account);
  return NULL;
}

static int has_job = 1;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The first one has a job until the end, the others wait for one. */
static void* serve(void* unused) {
  const struct account account = {now_ns(), 0};
  (void)unused;
  pthread_mutex_lock(&mutex);
  while (!has_job && now_ns() < end_ns) pthread_cond_wait(&changed, &mutex);
  const int is_busy = has_job;
  has_job = 0;
  pthread_mutex_unlock(&mutex);
  if (is_busy) {
    prctl(PR_SET_NAME, "busy");
    while (now_ns() < end_ns) {
      for (volatile int i = 0; i < 100000; i++) {
      }
    }
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
  tell(&account);
  sleep_ms(500); /* how long a wait was is known when the thread is found in the next one */
  return NULL;
}

static void* work(void* number) {
  const struct account account = {now_ns(), 0};
  const int events = *(int*)number;
  const int poller = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(poller, EPOLL_CTL_ADD, events, &event);
  while (now_ns() < end_ns) {
    const long long left_ms = (end_ns - now_ns()) / 1000000 + 1;
    unsigned long long count;
    if (epoll_wait(poller, &event, 1, (int)left_ms) == 1 && read(events, &count, sizeof(count)) < 0) exit(1);
  }
  tell(&account);
  return NULL;
}

static void* feed(void* number) {
  const unsigned long long one = 1;
  while (now_ns() < end_ns) {
    sleep_ms(10);
    if (write(*(int*)number, &one, sizeof(one)) < 0) exit(1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  end_ns = now_ns() + (long long)(atof(argv[2]) * 1e9);
  pthread_t threads[4];
  int count = 0;
  if (!strcmp(argv[1], "sleeps")) {
    pthread_create(&threads[count++], NULL, sleeps, NULL);
  } else if (!strcmp(argv[1], "mutex")) {
    pthread_create(&threads[count++], NULL, hold, NULL);
    while (count < 4) pthread_create(&threads[count++], NULL, want, NULL);
  } else if (!strcmp(argv[1], "pipe")) {
    if (pipe(pipes[0]) || pipe(pipes[1])) return 1;
    for (long side = 0; side < 2; side++) pthread_create(&threads[count++], NULL, send_back, (void*)side);
  } else if (!strcmp(argv[1], "starved")) {
    while (count < 4) pthread_create(&threads[count++], NULL, compute, NULL);
  } else if (!strcmp(argv[1], "fsync")) {
    pthread_create(&threads[count++], NULL, sync_file, NULL);
  } else if (!strcmp(argv[1], "faults")) {
    pthread_create(&threads[count++], NULL, fault, NULL);
  } else if (!strcmp(argv[1], "workers")) {
    while (count < 4) pthread_create(&threads[count++], NULL, serve, NULL);
  } else if (!strcmp(argv[1], "pool")) {
    static int events[3];
    for (int i = 0; i < 3; i++) {
      events[i] = eventfd(0, EFD_NONBLOCK);
      pthread_create(&threads[count++], NULL, work, &events[i]);
    }
    pthread_create(&threads[count++], NULL, feed, &events[0]);
  } else {
    return 2;
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  printf("end\n");
  fflush(stdout);
  pause();
}
