/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain NAME_outer > NAME_middle > NAME_work, in files that differ only in NAME and the order of the three
 * functions. An address that is taken for another file's is in another function, or breaks the chain's order.
 */
#ifndef FLAMED_TEST_CHURN_CHAIN_H
#define FLAMED_TEST_CHURN_CHAIN_H

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define OUTER PASTE(NAME, outer)
#define MIDDLE PASTE(NAME, middle)
#define WORK PASTE(NAME, work)
/* Not reordered by the compiler. The frames differ in size, so that rules of the wrong file give wrong stacks. */
#define IN_ORDER __attribute__((noinline, noipa, no_reorder))
#define FRAME(bytes)            \
  volatile char frame[(bytes)]; \
  frame[0] = 1;                 \
  (void)frame[0]

static volatile unsigned long churn_sink;

void OUTER(unsigned long rounds);
void MIDDLE(unsigned long rounds);
void WORK(unsigned long rounds);

#define DEFINE_OUTER(bytes)                   \
  IN_ORDER void OUTER(unsigned long rounds) { \
    FRAME(bytes);                             \
    MIDDLE(rounds);                           \
    churn_sink = 0;                           \
  }
#define DEFINE_MIDDLE(bytes)                   \
  IN_ORDER void MIDDLE(unsigned long rounds) { \
    FRAME(bytes);                              \
    WORK(rounds);                              \
    churn_sink = 0;                            \
  }
#define DEFINE_WORK(bytes)                                      \
  IN_ORDER void WORK(unsigned long rounds) {                    \
    FRAME(bytes);                                               \
    for (unsigned long i = 0; i < rounds; i++) churn_sink += i; \
  }

#if ORDER == 0
DEFINE_OUTER(40)
DEFINE_MIDDLE(200)
DEFINE_WORK(24)
#elif ORDER == 1
DEFINE_WORK(104)
DEFINE_OUTER(24)
DEFINE_MIDDLE(72)
#elif ORDER == 2
DEFINE_MIDDLE(328)
DEFINE_WORK(56)
DEFINE_OUTER(136)
#else
DEFINE_WORK(24)
DEFINE_MIDDLE(40)
DEFINE_OUTER(264)
#endif

#endif
