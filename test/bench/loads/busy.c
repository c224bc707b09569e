/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that only compute, in call chains of many shapes, and count their rounds.
 *
 *   load_busy COUNTERS THREADS DEPTH AT_ONCE
 *
 * COUNTERS is a file of at least 64 bytes for each thread, with the thread's count at their start. Other processes can
 * map it. Stacks have DEPTH / 2 to DEPTH frames. There are 512 chains; as in real programs a few of them take most of
 * the time.
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))
enum { kChains = 512, kStackBytes = 256 * 1024, kCounterBytes = 64, kLaps = 16 };

static volatile uint64_t* counters;
static unsigned deepest;
static unsigned threads;
static unsigned at_once;
static sem_t* turns; /* of each thread */

typedef uint64_t step(unsigned depth, uint64_t path);
static step* const steps[16];

NOINLINE static uint64_t bottom(uint64_t path) {
  for (unsigned i = 0; i < 4000; i++) path = path * 6364136223846793005ULL + 1442695040888963407ULL;
  return path;
}

/* The code after the call keeps it from becoming a jump, which would take the caller off the stack. */
NOINLINE static uint64_t descend(unsigned depth, uint64_t path) {
  return depth == 0 ? bottom(path) : steps[path & 15](depth - 1, (path >> 4) | (path << 60)) + 1;
}
/* The assertion makes the macro end in a semicolon. */
#define STEP(n)                                                                \
  NOINLINE static uint64_t step_##n(unsigned depth, uint64_t path) {           \
    for (unsigned i = 0; i < 20 + 5 * n; i++) path ^= ((path << 13) >> 7) ^ n; \
    return descend(depth, path) * 3 + n;                                       \
  }                                                                            \
  _Static_assert(n < 16, "one of 16")
STEP(0);
STEP(1);
STEP(2);
STEP(3);
STEP(4);
STEP(5);
STEP(6);
STEP(7);
STEP(8);
STEP(9);
STEP(10);
STEP(11);
STEP(12);
STEP(13);
STEP(14);
STEP(15);
static step* const steps[16] = {step_0, step_1, step_2,  step_3,  step_4,  step_5,  step_6,  step_7,
                                step_8, step_9, step_10, step_11, step_12, step_13, step_14, step_15};

static uint64_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static void* work(void* argument) {
  volatile uint64_t* const counter = argument;
  const unsigned self = (unsigned)((size_t)(counter - counters) * sizeof(uint64_t) / kCounterBytes);
  uint64_t random = 88172645463325252ULL + (uint64_t)(counter - counters);
  for (;;) {
    if (at_once < threads) sem_wait(&turns[self]);
    /* The product of three numbers below 8 is small far more often than large. */
    const uint64_t dice = next(&random);
    uint64_t chain = (dice & 7) * (dice >> 8 & 7) * (dice >> 16 & 7) + 1;
    const uint64_t path = next(&chain) * 2654435761U;
    /* A chain takes two frames for each step. */
    const unsigned depth = (deepest / 2 + (unsigned)(path >> 40) % (deepest / 2 + 1)) / 2;
    uint64_t sum = 0;
    for (int i = 0; i < kLaps; i++) sum += descend(depth, path);
    *counter += 1 + (sum == 42);
    if (at_once < threads) sem_post(&turns[(self + 1) % threads]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  threads = (unsigned)atoi(argv[2]);
  deepest = (unsigned)atoi(argv[3]);
  at_once = (unsigned)atoi(argv[4]);
  const int file = open(argv[1], O_RDWR);
  counters = mmap(NULL, (size_t)threads * kCounterBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || counters == MAP_FAILED) {
    perror(argv[1]);
    return 1;
  }
  turns = calloc(threads, sizeof(*turns));
  for (unsigned i = 0; turns != NULL && i < threads; i++) sem_init(&turns[i], 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (unsigned i = 0; i < threads; i++) {
    pthread_t thread;
    void* const counter = (char*)counters + (size_t)i * kCounterBytes;
    if (pthread_create(&thread, &attributes, work, counter) != 0) {
      perror("a thread");
      return 1;
    }
  }
  for (unsigned i = 0; i < at_once; i++) sem_post(&turns[(size_t)i * threads / at_once]);
  for (;;) pause();
}
