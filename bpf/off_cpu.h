/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exact mode of waiting: what off_cpu.bpf.c keeps of each thread of the selected processes and writes into its
 * ring, and which waits have their stack taken. Also compiled on the host, where unit tests run it.
 *
 * A wait is known when the thread leaves a CPU again: then the kernel's count says how much of the time away it stood
 * in run queues. Its place is a system call, and its times are added up there, exactly. Whether its stack is taken is
 * decided when it begins, since only then can the thread's memory be read: by a chance that is larger the longer the
 * waits at that place have been lately, so that a stack comes for each `period` of waiting. It stands for the time of
 * its wait divided by that chance.
 */
#ifndef FLAMED_BPF_OFF_CPU_H
#define FLAMED_BPF_OFF_CPU_H

#include "visits.h"

/* flamed_wait_end.type. */
#define FLAMED_RECORD_WAIT_END 0x10001U
/* flamed_waker.type. */
#define FLAMED_RECORD_WAKER 0x10002U

/* Processes that can be selected, and threads of these that are told apart. */
#define FLAMED_MOST_SELECTED 64
#define FLAMED_MOST_OFF_CPU 8192

/* Places of one thread: further system calls are taken for one. Most threads wait in two or three. */
#define FLAMED_OFF_CPU_PLACES 8

/* In the place of a system call. */
#define FLAMED_PREEMPTED (-2)   /* it could have run on */
#define FLAMED_OTHER_CALLS (-3) /* of the last place, where there are more */

/* A chance of 1. */
#define FLAMED_SURE 65536U
/* The least chance, at the first period: waits may become longer than they have been. */
#define FLAMED_LEAST_CHANCE 1024U
#define FLAMED_FIRST_PERIOD_NS 10000000ULL

/* Time by place. Written by the program, read by the daemon when that is detached. */
struct flamed_off_cpu_place {
  __s32 call; /* number of the system call, FLAMED_NO_SYSTEM_CALL, or one of the above */
  __u32 waits;
  __u64 blocked_ns;
  __u64 queued_ns;
  __u64 mean_ns; /* of the last waits */
};

/* By tid. */
struct flamed_off_cpu_thread {
  __u64 start_ns;  /* CLOCK_BOOTTIME: with the tid, the thread's identity */
  __u64 out_ns;    /* CLOCK_MONOTONIC: when it left a CPU; 0: it is on one */
  __u64 away_ns;   /* the last wait, while it is not known how much of it was in run queues; 0: none */
  __u64 queued_ns; /* its time in run queues before that wait */
  __u64 number;    /* of that wait: flamed_wait.switches */
  __u32 tgid;
  __u32 place;  /* of that wait */
  __u32 chance; /* by which its stack was taken; 0: it was not */
  __u32 reserved;
  struct flamed_off_cpu_place places[FLAMED_OFF_CPU_PLACES];
};

/* A wait whose stack was taken is over. */
struct flamed_wait_end {
  __u32 type; /* FLAMED_RECORD_WAIT_END */
  __u32 tid;
  __u64 number; /* flamed_wait.switches of the record with its stack */
  __u64 blocked_ns;
  __u64 queued_ns;
  __s32 call; /* the place's */
  __u32 chance;
};

/* Of the kernel stack of a waker: enough to find where an interrupt came in, which tells whether it was the thread's
 * doing. */
#define FLAMED_WAKER_FRAMES 64

/* A thread is woken from a wait whose stack was taken. */
struct flamed_waker {
  __u32 type;   /* FLAMED_RECORD_WAKER */
  __u32 tid;    /* of the thread that is woken */
  __u64 number; /* of its wait */
  __u32 waker;  /* the thread that ran when it was woken, perhaps in an interrupt; 0: none did */
  __u32 tgid;   /* its process */
  __u32 owner;  /* flamed_sample.owner */
  __u32 frames;
  char comm[FLAMED_COMM_BYTES];
  __u64 addresses[FLAMED_WAKER_FRAMES]; /* of the kernel, innermost first */
};

/* A wait begins, and its stack is taken. The visit's `size` counts its addresses. */
struct flamed_off_cpu_stack {
  struct flamed_visit visit;
  __u64 stack_bytes; /* of the stack, from the block of the stack pointer on */
  __u8 stack[8 * FLAMED_SLICE_BLOCK_BYTES];
};

/* One for each CPU; counters only grow. */
struct flamed_off_cpu_counts {
  __u64 run_ns;       /* in the program, for threads of the selection */
  __u64 waits;        /* that have begun */
  __u64 stacks;       /* taken */
  __u64 no_room;      /* stacks, ends of waits and wakers that did not fit into the ring */
  __u64 lost_threads; /* seen when there was no room for another one */
};

/* Its index; a new one has the call already. */
static __always_inline __u32 find_place(struct flamed_off_cpu_thread* thread, __s32 call) {
  for (__u32 i = 0; i < FLAMED_OFF_CPU_PLACES - 1; i++) {
    struct flamed_off_cpu_place* place = &thread->places[i];
    if (place->waits && place->call == call) return i;
    if (!place->waits) {
      place->call = call;
      return i;
    }
  }
  thread->places[FLAMED_OFF_CPU_PLACES - 1].call = FLAMED_OTHER_CALLS;
  return FLAMED_OFF_CPU_PLACES - 1;
}

/* The chance for a wait that begins: of FLAMED_SURE. */
static __always_inline __u32 chance_of(const struct flamed_off_cpu_place* place, __u64 period_ns) {
  if (!place->waits || place->mean_ns >= period_ns) return FLAMED_SURE;
  const __u64 least = FLAMED_LEAST_CHANCE * FLAMED_FIRST_PERIOD_NS / period_ns;
  const __u64 chance = place->mean_ns * FLAMED_SURE / period_ns;
  if (chance > least) return (__u32)chance;
  return least ? (__u32)least : 1;
}

/* Adds a wait that is over. The mean follows the last few, so that it soon knows when waits become longer. */
static __always_inline void add_wait(struct flamed_off_cpu_place* place, __u64 blocked_ns, __u64 queued_ns) {
  const __u64 ns = blocked_ns + queued_ns;
  place->blocked_ns += blocked_ns;
  place->queued_ns += queued_ns;
  if (!place->waits)
    place->mean_ns = ns;
  else if (ns >= place->mean_ns)
    place->mean_ns += (ns - place->mean_ns) / 4;
  else
    place->mean_ns -= (place->mean_ns - ns) / 4;
  place->waits++;
}

FLAMED_STATIC_ASSERT(sizeof(struct flamed_off_cpu_place) == 32, "the same on both sides");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_off_cpu_thread) == 56 + 32 * FLAMED_OFF_CPU_PLACES, "the same on both sides");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_wait_end) == 40, "the same on both sides");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_waker) == 48 + 8 * FLAMED_WAKER_FRAMES, "the same on both sides");

#endif /* FLAMED_BPF_OFF_CPU_H */
