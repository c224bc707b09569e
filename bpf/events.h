/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ABI between the kernel programs and the daemon: the layout of a sample in the ring of samples, and the counters.
 * Both sides include this file; both compilers must agree on every byte.
 */
#ifndef FLAMED_BPF_EVENTS_H
#define FLAMED_BPF_EVENTS_H

#include <linux/types.h>

/*
 * Frames in a record, which takes only as many bytes as it has frames: 9 KiB at most. 127 is PERF_MAX_STACK_DEPTH, the
 * default of kernel.perf_event_max_stack.
 */
#define FLAMED_MAX_USER_FRAMES 1024
#define FLAMED_MAX_KERNEL_FRAMES 127
#define FLAMED_MAX_FRAMES (FLAMED_MAX_USER_FRAMES + FLAMED_MAX_KERNEL_FRAMES)
#define FLAMED_COMM_BYTES 16 /* TASK_COMM_LEN */

/* flamed_sample.owner: the thread has no single user. (uid_t)-1, which no user has. */
#define FLAMED_NO_OWNER 0xffffffffU

enum flamed_sample_kind {
  FLAMED_ON_CPU = 1,  /* the timer found this thread running */
  FLAMED_WAITING = 2, /* a visit found it waiting, see visits.h */
  FLAMED_OFF_CPU = 3, /* a wait that has just begun, see off_cpu.h */
};

/* How the walk over the user stack ended. */
enum flamed_user_end {
  FLAMED_END_OUTERMOST = 0,      /* the outermost frame was reached: its saved frame pointer is 0 */
  FLAMED_END_NO_USER_SPACE = 1,  /* a kernel thread, or an exiting one: there is no user stack */
  FLAMED_END_DEPTH_LIMIT = 2,    /* more than FLAMED_MAX_USER_FRAMES */
  FLAMED_END_BROKEN_POINTER = 3, /* the frame pointer is not an address further up the stack */
  FLAMED_END_UNREADABLE = 4,     /* the stack page is not in memory */
  FLAMED_END_NO_REGISTERS = 5,   /* this kernel does not show the user registers */

  /* Walks by unwind tables: */
  FLAMED_END_NO_PROCESS = 6,        /* the process is so new that it has no tables yet */
  FLAMED_END_NO_MAPPING = 7,        /* an address is in no mapping that the daemon has published */
  FLAMED_END_ROWS_PENDING = 8,      /* the module's rows are being built, or were evicted */
  FLAMED_END_NO_INFORMATION = 9,    /* code without unwind information, and without frame pointers */
  FLAMED_END_UNSUPPORTED = 10,      /* unwind information that a rule can't express */
  FLAMED_END_UNKNOWN_REGISTER = 11, /* the rule needs a register that is not known in this frame */
  FLAMED_END_NOT_GROWING = 12,      /* the caller's frame is not above this one's: wrong tables, or a damaged stack */
};

/* flamed_sample.flags */
#define FLAMED_KERNEL_DEPTH_LIMIT 1 /* more kernel frames than fit: those next to user space are missing */
#define FLAMED_WALKED_BY_TABLES 4   /* else by frame pointers alone */
#define FLAMED_COMPAT_32BIT 2       /* a 32-bit process on a 64-bit kernel */
#define FLAMED_AWAITS_TABLES 8      /* walked by frame pointers, until the process has tables */
#define FLAMED_NOT_DUMPABLE 16      /* the process is not dumpable, see dumpable.h; never with END_NO_USER_SPACE */

/* The state of the program that walks by unwind tables. */
enum flamed_walk {
  FLAMED_WALK_PENDING = 0,
  FLAMED_WALK_LOADED = 1,
  FLAMED_WALK_REFUSED = 2, /* by the kernel: only frame pointers from now on */
};

/*
 * One sample: written by sampler.bpf.c, read by daemon/sampler/record.cc. It has no time and CPU: the record around it
 * has the time, the ring the CPU.
 */
struct flamed_sample {
  __u32 tgid; /* pids of the initial pid namespace */
  __u32 tid;
  __u64 start_boottime_ns; /* of the thread group's leader: with tgid, the process's identity */
  __u64 exec_id;           /* the process's program: incremented at each exec (task->self_exec_id) */
  __u64 cgroup_id;         /* inode of the cgroup v2 directory */
  __u64 weight_ns;         /* CPU time that this sample stands for: the period of its timer */
  __u32 owner;             /* uid of the thread's owner in the initial user namespace, see thread_owner.h */
  __u16 slice_place;       /* with slice_blocks: the first block in the CPU's ring of slices, see stack_slice.h */
  __u16 slice_blocks;      /* 0: there is no slice */
  __u8 kind;               /* enum flamed_sample_kind */
  __u8 user_end;           /* enum flamed_user_end */
  __u8 kernel_count;       /* addresses[user_count .. user_count + kernel_count): kernel, innermost first */
  __u8 flags;
  __u16 user_count; /* addresses[0 .. user_count): user space, innermost first */
  __u16 tables;     /* with FLAMED_WALKED_BY_TABLES: the edition of the process's tables (flamed_process.tables) */
  /* Frames of a runtime and its calls from native code, see linked_layout.h. */
  __u16 linked_frames;
  __u16 linked_calls;
  __u16 linked_layout;          /* by which they were found: flamed_process.runtime; 0: the process has no runtime */
  __u16 linked_cut;             /* 1: frames outside of the last one are missing */
  char comm[FLAMED_COMM_BYTES]; /* of the thread, NUL-terminated */
  /* __u64 addresses[user_count + kernel_count], struct flamed_linked_frame[linked_frames], __u64[linked_calls] follow
   */
};

/* A record in the ring, with only the used addresses. It begins like a record of a perf buffer. */
struct flamed_record {
  __u32 type;    /* PERF_RECORD_SAMPLE */
  __u16 misc;    /* 0 */
  __u16 size;    /* bytes of the whole record: a multiple of 8 */
  __u64 time_ns; /* CLOCK_MONOTONIC, when it was written */
  struct flamed_sample sample;
  __u64 addresses[FLAMED_MAX_FRAMES];
};
#define FLAMED_MAX_RECORD_WORDS (sizeof(struct flamed_record) / 8)

/*
 * A stack of 1,000 frames takes 25 us, and 200 us if nothing of it is in the CPU's caches. A longer run was stopped by
 * the hypervisor, or waited for another CPU's cache lines: one such run would look like hundreds.
 */
#define FLAMED_LONGEST_RUN_NS 250000ULL

/*
 * One cache line per CPU, in an array map that the daemon maps into its memory: reading needs no system call. The
 * program writes only its own CPU's; counters only grow. taken = submitted + the lost_*.
 */
struct flamed_counters {
  __u64 taken;          /* the timer fired while a thread ran */
  __u64 submitted;      /* records written into the ring */
  __u64 lost_ring_full; /* the ring had no room */
  __u64 lost_no_ring;   /* the CPU has no ring */
  __u64 run_ns;         /* time spent in the program, each run counted as FLAMED_LONGEST_RUN_NS at most */
  __u64 sliced;         /* samples with a slice of their stack */
  __u64 slices_refused; /* the ring of slices had no room */
  __u64 reserved;
};

#ifdef __cplusplus
#define FLAMED_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define FLAMED_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif
FLAMED_STATIC_ASSERT(sizeof(struct flamed_sample) == 80, "the sample's header is 80 bytes on both sides");
FLAMED_STATIC_ASSERT(__builtin_offsetof(struct flamed_sample, comm) == 64, "no hidden padding before comm");
FLAMED_STATIC_ASSERT(__builtin_offsetof(struct flamed_record, addresses) == 96,
                     "no padding in what goes into the ring");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_counters) == 64, "one cache line");

#endif /* FLAMED_BPF_EVENTS_H */
