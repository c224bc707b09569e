/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits of threads that wait: the layout of what waits.bpf.c writes into its ring of records, and the table in which
 * it remembers the threads. Also compiled on the host, where unit tests run the table.
 */
#ifndef FLAMED_BPF_VISITS_H
#define FLAMED_BPF_VISITS_H

#include "events.h"
#include "sample_ring.h"
#include "stack_slice.h"

/* flamed_record_head.type. The kernel's types of perf records end far below. */
#define FLAMED_RECORD_VISIT 0x10000U

enum flamed_wait_state {
  FLAMED_WAITS_FOR_CPU = 1, /* it could run: it stands in a run queue */
  FLAMED_SLEEPS = 2,        /* a signal would wake it */
  FLAMED_BLOCKED = 3,       /* not even a signal would: disks, and some locks of the kernel */
  FLAMED_STOPPED = 4,       /* by a signal, a debugger, or the freezer */
};

/* flamed_wait.known: which of the fields this kernel has. */
#define FLAMED_KNOWS_QUEUED 1
#define FLAMED_KNOWS_DISK 2
#define FLAMED_KNOWS_SYSTEM_CALL 4
#define FLAMED_KNOWS_REGISTERS 8 /* of user space, of a 64-bit program; and `runs` */
/* Likewise: disk_ns will have this wait when it is over. */
#define FLAMED_IS_COUNTED_AS_DISK 16

/* flamed_wait.stack: what becomes of the stack in user space. The program writes the first four, the daemon the rest.
 */
enum flamed_wait_stack {
  FLAMED_STACK_WANTED = 1, /* read it now */
  FLAMED_STACK_DUE = 2,    /* read it now: it was left for later, and there is time */
  FLAMED_STACK_LATER = 3,  /* it has waited for so long that its stack may be read when there is time */
  FLAMED_STACK_KNOWN = 4,  /* an earlier record of this wait had it */
  FLAMED_STACK_READ = 5,
  FLAMED_STACK_RAN = 6,    /* the thread ran before its stack was read */
  FLAMED_STACK_LATE = 7,   /* not read in time: its memory did not answer, or the daemon was behind */
  FLAMED_STACK_ABSENT = 8, /* there is no memory, or it is not there now */
};

#define FLAMED_NO_SYSTEM_CALL (-1)
#define FLAMED_SYSTEM_CALL_ARGUMENTS 3

/*
 * What a thread waits in. Written when the program finds it in another wait than at the last visit; read by
 * daemon/waits/wait_times.cc and daemon/flow. The counts are the thread's since it began, so that the difference of two
 * visits tells how the time between them was spent: time = run_ns + queued_ns + waited.
 */
struct flamed_wait {
  __u64 thread_start_ns; /* with the tid, the thread's identity: CLOCK_BOOTTIME */
  __u64 switches;        /* how often it has left a CPU. It counts waits: as long as it is the same, so is the wait */
  __u64 run_ns;          /* CPU time (se.sum_exec_runtime) */
  __u64 queued_ns;       /* time in run queues that is over (sched_info.run_delay) */
  __u64 disk_ns;         /* waits for block devices that are over (delays->blkio_delay) */
  __u64 last_seen_ns;    /* CLOCK_MONOTONIC: when it was last visited, in an earlier wait; 0: not known */
  __u64 runs;            /* how often it got a CPU (sched_info.pcount): the third number of /proc/TID/schedstat */
  __s64 system_call;     /* its number, or FLAMED_NO_SYSTEM_CALL */
  __u64 arguments[FLAMED_SYSTEM_CALL_ARGUMENTS];
  __u8 state; /* enum flamed_wait_state */
  __u8 known;
  __u8 stack; /* enum flamed_wait_stack */
  __u8 reserved;
  __u32 holder;                        /* written by the daemon: the thread that holds the lock; 0: not known */
  char holder_comm[FLAMED_COMM_BYTES]; /* likewise */
  __u64 registers[FLAMED_REGISTERS];   /* as it entered the kernel, by DWARF number */
};

/* The record of a visit. The sample has the thread, its process and the kernel stack; its weight is 0. */
struct flamed_visit {
  __u32 type;    /* FLAMED_RECORD_VISIT */
  __u16 misc;    /* 0 */
  __u16 size;    /* bytes of the whole record: a multiple of 8 */
  __u64 time_ns; /* CLOCK_MONOTONIC, of the visit */
  struct flamed_wait wait;
  struct flamed_sample sample;
  __u64 addresses[FLAMED_MAX_KERNEL_FRAMES];
};
#define FLAMED_MAX_VISIT_WORDS (sizeof(struct flamed_visit) / 8)

/* What the program did, since it was loaded. visited = the others, without no_room. */
struct flamed_visit_counts {
  __u64 visited;  /* threads */
  __u64 left_out; /* of the kernel, of the daemon and its helpers, or ending */
  __u64 running;
  __u64 unchanged; /* in the same wait as before: nothing is written */
  __u64 later;     /* whose stack is still to be read: some of the unchanged, and some of the recorded */
  __u64 recorded;
  __u64 moved;       /* it ran while its stack was read */
  __u64 passed_over; /* its owner has had its share of this round, see struct flamed_owner_share */
  __u64 no_room;     /* in the ring: the thread is visited again when there is */
  __u64 spent_ns;    /* what the recorded ones cost, by visit_cost_ns() */
};

#define FLAMED_MOST_NEW_LARGE 16

/* How long a read from the iterator lasts: whichever comes first. The daemon begins each with began_ns = 0. */
struct flamed_visit_turn {
  __u64 began_ns; /* CLOCK_MONOTONIC, of the first visit */
  __u64 longest_ns;
  __u32 new_stacks;     /* so many stacks are read at once: with more, the first threads would have left their waits */
  __u32 old_stacks;     /* so many may be read of threads that have waited for long */
  __u32 without_daemon; /* leave out its threads, and those of its helpers */
  /* The round over all threads that this read is a part of, and what each owner's visits may cost in it. */
  __u32 round;
  __u64 allowance_ns;
  __u32 counts_owners; /* so many threads have been visited in the round that it matters whose they are */
  __u32 listed;        /* threads in the list */
  /* Written by the program. */
  __u32 listed_done; /* of these */
  __u32 new_large;   /* owners that this read has found to be large; the first ones: */
  __u32 large[FLAMED_MOST_NEW_LARGE];
};

/*
 * The share of an owner (flamed_sample.owner) in a round over all threads. When it is used up, threads that would leave
 * a record are passed over, which costs little more than the iterator itself; the next round goes on with them where
 * this one stopped, so that all have their turn.
 */
struct flamed_owner_share {
  __s64 left_ns;       /* what visits of its threads may still cost in this round; the last one may cost more */
  __u64 threads;       /* that were counted in this round: only while flamed_visit_turn.counts_owners */
  __u64 passed_over;   /* in this round, because the share was used up */
  __u64 passed_before; /* likewise, in the one before */
  __u32 round;         /* of these */
  __u32 next_tid;      /* the threads before it have had their turn */
  __u32 is_large;      /* written by the daemon: its threads are not visited by the list */
  __u32 reserved;
};
#define FLAMED_MOST_OWNERS 1024

/* An owner with so many counted threads is large, and one whose share was used up. */
#define FLAMED_MANY_THREADS 1024

/*
 * What a visit costs that leaves a record, and beyond that one whose stack is read and walked. They decide on shares,
 * and are right where many visits follow each other; the daemon knows by how much they cost more (WaitVisitor).
 */
#define FLAMED_RECORD_NS 4000
#define FLAMED_STACK_NS 60000

static __always_inline void begin_share(struct flamed_owner_share* share, const struct flamed_visit_turn* turn) {
  if (share->round == turn->round) return;
  share->passed_before = share->round + 1 == turn->round ? share->passed_over : 0;
  if (!share->passed_before) share->next_tid = 0;
  share->passed_over = 0;
  share->threads = 0;
  share->left_ns = (__s64)turn->allowance_ns;
  share->round = turn->round;
}

/* `stack`: enum flamed_wait_stack of the record. */
static __always_inline __u64 visit_cost_ns(__u8 stack) {
  return stack == FLAMED_STACK_WANTED || stack == FLAMED_STACK_DUE ? FLAMED_RECORD_NS + FLAMED_STACK_NS
                                                                   : FLAMED_RECORD_NS;
}

/* The thread has left a record. */
static __always_inline void spend_visit(struct flamed_owner_share* share, __u32 tid, __u8 stack) {
  share->next_tid = tid + 1;
  share->left_ns -= (__s64)visit_cost_ns(stack);
}

static __always_inline void note_large(struct flamed_visit_turn* turn, __u32 owner) {
  if (turn->new_large < FLAMED_MOST_NEW_LARGE) turn->large[turn->new_large++] = owner;
}

/* May a thread of this owner leave a record? */
static __always_inline int has_turn(struct flamed_owner_share* share, struct flamed_visit_turn* turn, __u32 owner,
                                    __u32 tid) {
  if (tid < share->next_tid) return 0;
  if (share->left_ns > 0) return 1;
  if (!share->passed_over++ && !share->is_large) note_large(turn, owner);
  return 0;
}

/* Threads of owners that are not large, which are visited by their tids, more often than the round over all comes by.
 */
#define FLAMED_MOST_LISTED 8192
struct flamed_listed_thread {
  __u32 tid; /* the program writes 0 if there is no such thread, or if it is a large owner's */
  __u32 reserved;
};

/* A turn has one visit at least, so that each round comes to an end. */
static __always_inline int is_over(struct flamed_visit_turn* turn, __u64 now_ns) {
  if (!turn->began_ns) turn->began_ns = now_ns;
  return turn->new_stacks == 0 || now_ns - turn->began_ns > turn->longest_ns;
}

/*
 * The table of threads: each has its place in one of FLAMED_WAIT_SETS sets, a cache line each. If a set is full, the
 * thread that was not seen for longest is forgotten, and its next visit is written although it may not have moved.
 */
#define FLAMED_WAITS_PER_SET 4
#define FLAMED_WAIT_SETS 16384

struct known_wait {
  __u64 key;     /* see wait_key(); 0: none */
  __u64 seen_ns; /* CLOCK_MONOTONIC, of the last visit */
};

struct known_waits {
  struct known_wait waits[FLAMED_WAITS_PER_SET];
};

/* pid_max is at most 2^22 (PID_MAX_LIMIT). Of the start 8 bits are enough: tids come back late, if at all. */
#define FLAMED_TID_BITS 22
#define FLAMED_THREAD_BITS 30
#define FLAMED_THREAD_MASK ((1ULL << FLAMED_THREAD_BITS) - 1)
#define FLAMED_WAIT_BITS 30 /* switches, and whether it is queued */

/*
 * Each thread leaves a record in each epoch of 2^40 ns, 18 minutes, even in the same wait. So the daemon finds threads
 * that have ended unnoticed. Epochs begin at another time for each thread.
 */
#define FLAMED_EPOCH_SHIFT 40
static __always_inline __u32 wait_epoch(__u32 tid, __u64 now_ns) {
  return (__u32)((now_ns + (__u64)(tid & 0x3ff) * (1ULL << (FLAMED_EPOCH_SHIFT - 10))) >> FLAMED_EPOCH_SHIFT) & 0x7;
}

/* In known_wait.key, above the epoch: its stack is still to be read. */
#define FLAMED_STACK_IS_LATER (1ULL << 63)

/* The thread in the lower bits, above them its wait, and the epoch. */
static __always_inline __u64 wait_key(__u32 tid, __u64 thread_start_ns, __u64 switches, __u32 is_queued, __u32 epoch) {
  const __u64 start = (thread_start_ns * 0x9e3779b97f4a7c15ULL) >> 56;
  const __u64 thread = (tid & ((1U << FLAMED_TID_BITS) - 1)) | start << FLAMED_TID_BITS;
  const __u64 wait = (switches << 1 | (is_queued & 1)) & ((1ULL << FLAMED_WAIT_BITS) - 1);
  return (__u64)epoch << (FLAMED_THREAD_BITS + FLAMED_WAIT_BITS) | wait << FLAMED_THREAD_BITS | thread;
}

/* Threads of a process have successive tids, so these are spread best by their lowest bits. */
static __always_inline __u32 wait_set(__u32 tid) { return tid & (FLAMED_WAIT_SETS - 1); }

/* The thread's place in its set, or the one to be used for it. */
static __always_inline struct known_wait* find_wait(struct known_waits* set, __u64 key) {
  struct known_wait* oldest = &set->waits[0];
  for (int i = 0; i < FLAMED_WAITS_PER_SET; i++) {
    struct known_wait* wait = &set->waits[i];
    if (wait->key && !((wait->key ^ key) & FLAMED_THREAD_MASK)) return wait;
    if (wait->seen_ns < oldest->seen_ns) oldest = wait;
  }
  return oldest;
}

static __always_inline int is_same_thread(const struct known_wait* wait, __u64 key) {
  return wait->key && !((wait->key ^ key) & FLAMED_THREAD_MASK);
}

static __always_inline int is_same_wait(const struct known_wait* wait, __u64 key) {
  return wait->key && !((wait->key ^ key) & ((1ULL << (FLAMED_THREAD_BITS + FLAMED_WAIT_BITS)) - 1));
}

/*
 * What to do about the stack of the thread with this key (enum flamed_wait_stack); 0: write no record. A stack costs
 * more than all else of a visit, so those of threads that have waited for long (`is_old`) are read when there is time
 * (`old_stacks`): so the first round over many sleeping threads costs no more than others, and threads that run have
 * their stacks read first.
 */
static __always_inline __u8 stack_due(const struct known_wait* known, __u64 key, __u32 is_old, __u32 old_stacks) {
  const enum flamed_wait_stack later = old_stacks ? FLAMED_STACK_DUE : FLAMED_STACK_LATER;
  if (!is_same_thread(known, key)) return is_old ? later : FLAMED_STACK_WANTED;
  if (!is_same_wait(known, key)) return FLAMED_STACK_WANTED;
  const int is_later = (known->key & FLAMED_STACK_IS_LATER) != 0;
  if (is_later && old_stacks) return FLAMED_STACK_DUE;
  if ((known->key & ~FLAMED_STACK_IS_LATER) == key) return 0;
  return is_later ? FLAMED_STACK_LATER : FLAMED_STACK_KNOWN;
}

/* A thread that has not run for so long before its first visit has waited for long. */
#define FLAMED_OLD_WAIT_NS 10000000000ULL

/* The kernel's task->state: include/linux/sched.h. */
#define FLAMED_TASK_INTERRUPTIBLE 0x1
#define FLAMED_TASK_UNINTERRUPTIBLE 0x2
#define FLAMED_TASK_STOPPED 0xc   /* __TASK_STOPPED | __TASK_TRACED */
#define FLAMED_TASK_FROZEN 0x8000 /* 6.1 */

/* `is_queued`: it stands in a run queue, and is not one that sleeps there (sched_delayed). */
static __always_inline __u8 wait_state(__u64 task_state, __u32 is_queued) {
  if (is_queued) return FLAMED_WAITS_FOR_CPU;
  if (task_state & FLAMED_TASK_UNINTERRUPTIBLE) return FLAMED_BLOCKED;
  if (task_state & (FLAMED_TASK_STOPPED | FLAMED_TASK_FROZEN)) return FLAMED_STOPPED;
  return FLAMED_SLEEPS;
}

FLAMED_STATIC_ASSERT(sizeof(struct flamed_wait) == 112 + 8 * FLAMED_REGISTERS, "the same on both sides");
FLAMED_STATIC_ASSERT(__builtin_offsetof(struct flamed_visit, addresses) == 208 + 8 * FLAMED_REGISTERS,
                     "no padding in what goes into the ring");
FLAMED_STATIC_ASSERT(sizeof(struct known_waits) == 64, "one cache line");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_visit_turn) == 56 + 4 * FLAMED_MOST_NEW_LARGE, "the same on both sides");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_owner_share) == 48, "the same on both sides");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_listed_thread) == 8, "the map has no padding between its elements");

#endif /* FLAMED_BPF_VISITS_H */
