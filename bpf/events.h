/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ABI between the kernel programs and the daemon: what a sample looks like on its way through the ring of samples,
 * and the counters. Both sides include this file; neither side's compiler may disagree about a byte of it.
 */
#ifndef FLAMED_BPF_EVENTS_H
#define FLAMED_BPF_EVENTS_H

#include <linux/types.h>

/*
 * Frames in a record. 127 is PERF_MAX_STACK_DEPTH, what kernel.perf_event_max_stack allows by default and what other
 * tools show; 2 x 127 x 8 bytes + the header stay below a page.
 */
#define FLAMED_MAX_USER_FRAMES 127
#define FLAMED_MAX_KERNEL_FRAMES 127
#define FLAMED_MAX_FRAMES (FLAMED_MAX_USER_FRAMES + FLAMED_MAX_KERNEL_FRAMES)
#define FLAMED_COMM_BYTES 16 /* TASK_COMM_LEN */

/* flamed_sample.owner: the thread is not one user's. (uid_t)-1, which is nobody's. */
#define FLAMED_NO_OWNER 0xffffffffU

enum flamed_sample_kind {
  FLAMED_ON_CPU = 1, /* the timer found this thread running */
};

/* How the walk over the user stack ended. */
enum flamed_user_end {
  FLAMED_END_OUTERMOST = 0,      /* the outermost frame was reached: its saved frame pointer is 0 */
  FLAMED_END_NO_USER_SPACE = 1,  /* a kernel thread, or one that is about to end: there is no user stack */
  FLAMED_END_DEPTH_LIMIT = 2,    /* more than FLAMED_MAX_USER_FRAMES */
  FLAMED_END_BROKEN_POINTER = 3, /* the frame pointer is no address further up the stack */
  FLAMED_END_UNREADABLE = 4,     /* the stack page is not in memory */
  FLAMED_END_NO_REGISTERS = 5,   /* this kernel does not tell where user space stood */

  /* Of walks by unwind tables: */
  FLAMED_END_NO_PROCESS = 6,        /* the process is so new that its tables do not stand yet */
  FLAMED_END_NO_MAPPING = 7,        /* an address lies in no mapping that the daemon has published */
  FLAMED_END_ROWS_PENDING = 8,      /* the module's rows are being built, or had to make room for others */
  FLAMED_END_NO_INFORMATION = 9,    /* code without unwind information, and without frame pointers */
  FLAMED_END_UNSUPPORTED = 10,      /* unwind information that a rule can't express */
  FLAMED_END_UNKNOWN_REGISTER = 11, /* the rule needs a register that is not known in this frame */
  FLAMED_END_NOT_GROWING = 12,      /* the caller's frame is not above this one's: wrong tables, or a damaged stack */
};

/* flamed_sample.flags */
#define FLAMED_KERNEL_DEPTH_LIMIT 1 /* more kernel frames than fit: those next to user space are missing */
#define FLAMED_WALKED_BY_TABLES 4   /* else by frame pointers alone */
#define FLAMED_COMPAT_32BIT 2       /* a 32-bit process on a 64-bit kernel */
#define FLAMED_AWAITS_TABLES 8      /* walked by frame pointers, but only until the process's tables stand */
#define FLAMED_NOT_DUMPABLE \
  16 /* its own user may not look into the process, see dumpable.h; never with END_NO_USER_SPACE */

/* How far the program is that walks by unwind tables. */
enum flamed_walk {
  FLAMED_WALK_PENDING = 0,
  FLAMED_WALK_LOADED = 1,
  FLAMED_WALK_REFUSED = 2, /* by the kernel: frame pointers it is, for good */
};

/*
 * One sample: written by sampler.bpf.c, read by daemon/sampler/record.cc. Time and CPU are not here: the record around
 * it has the time, the ring has the CPU.
 */
struct flamed_sample {
  __u32 tgid; /* pids of the initial pid namespace */
  __u32 tid;
  __u64 start_boottime_ns; /* of the thread group's leader: with tgid, the process's identity */
  __u64 exec_id;           /* which of the process's programs: one more with each exec (task->self_exec_id) */
  __u64 cgroup_id;         /* inode of the cgroup v2 directory */
  __u64 weight_ns;         /* CPU time that this sample stands for: the period of its timer */
  __u32 owner;             /* uid whose thread it is, see thread_owner.h, as the initial user namespace counts */
  __u32 reserved;          /* 0 */
  __u8 kind;               /* enum flamed_sample_kind */
  __u8 user_end;           /* enum flamed_user_end */
  __u8 user_count;         /* addresses[0 .. user_count): user space, innermost first */
  __u8 kernel_count;       /* addresses[user_count .. user_count + kernel_count): kernel, innermost first */
  __u16 flags;
  __u16 tables; /* with FLAMED_WALKED_BY_TABLES: which edition of the process's tables (flamed_process.tables) */
  char comm[FLAMED_COMM_BYTES]; /* of the thread, NUL-terminated */
  /* __u64 addresses[user_count + kernel_count] follow */
};

/* What goes into the ring: only the addresses that exist. It begins as a record of a perf buffer does. */
struct flamed_record {
  __u32 type;    /* PERF_RECORD_SAMPLE */
  __u16 misc;    /* 0 */
  __u16 size;    /* bytes of all of it: a multiple of 8 */
  __u64 time_ns; /* CLOCK_MONOTONIC, when it was written */
  struct flamed_sample sample;
  __u64 addresses[FLAMED_MAX_FRAMES];
};
#define FLAMED_MAX_RECORD_WORDS (sizeof(struct flamed_record) / 8)

/*
 * The deepest stacks take 20 us. What takes longer was stopped by the hypervisor, or waited for another CPU's cache
 * lines: one such run would look like hundreds.
 */
#define FLAMED_LONGEST_RUN_NS 100000ULL

/*
 * One cache line per CPU, in an array map that the daemon maps into its memory: reading costs no system call. Written
 * by the program on its own CPU only; every one only grows. taken = submitted + the lost_*.
 */
struct flamed_counters {
  __u64 taken;          /* the timer fired on a thread that is not idle */
  __u64 submitted;      /* records that went into the ring */
  __u64 lost_ring_full; /* the ring had no room */
  __u64 lost_no_ring;   /* the CPU has no ring */
  __u64 run_ns;         /* time spent in the program, each run counted as FLAMED_LONGEST_RUN_NS at most */
  __u64 reserved[3];
};

#ifdef __cplusplus
#define FLAMED_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define FLAMED_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif
FLAMED_STATIC_ASSERT(sizeof(struct flamed_sample) == 72, "the sample's header is 72 bytes on both sides");
FLAMED_STATIC_ASSERT(__builtin_offsetof(struct flamed_sample, comm) == 56, "no hidden padding before comm");
FLAMED_STATIC_ASSERT(__builtin_offsetof(struct flamed_record, addresses) == 88,
                     "no padding in what goes into the ring");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_counters) == 64, "one cache line");

#endif /* FLAMED_BPF_EVENTS_H */
