/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwind tables: the daemon publishes the mappings of processes and the steps from frames to their callers for the
 * kernel program. All arrays are mapped into the daemon's memory, so that filling them needs no system call. Layouts
 * are shared with daemon/unwind/.
 *
 *   process (hash: tgid) ──► a run of mappings in one mapping block, sorted by address
 *   mapping ──► module ──► a run of pages, one for each 64 KiB of the file ──► a run of rows in one slab ──► rule
 *
 * The daemon never changes data that the program may be reading: it writes elsewhere, switches one word over, and
 * reuses the old place when no run of the program can read it any more.
 */
#ifndef FLAMED_BPF_UNWIND_TABLES_H
#define FLAMED_BPF_UNWIND_TABLES_H

#include <linux/types.h>

#include "events.h"

/*
 * A row is 4 bytes: the place in the 64 KiB page (upper half), and the number of the rule from there on (lower half).
 */
#define FLAMED_PAGE_SHIFT 16
#define FLAMED_SLAB_ROWS 65536 /* 256 KiB: one map of the array of maps */
#define FLAMED_MAX_SLABS 2048  /* 512 MiB of rows; the configured budget is far below */
#define FLAMED_MAX_RULES 65536 /* the limit of 16 bits; a whole Debian system has about 4,100 */
#define FLAMED_MAX_MODULES 16384
#define FLAMED_MAX_PAGES 131072 /* 8 GiB of code */
/* The densest page of 1,211 Debian ELF files has 5,916 rows: 13 steps. One more allows twice as many. */
#define FLAMED_ROW_STEPS 14
#define FLAMED_MAX_PAGE_ROWS (1 << FLAMED_ROW_STEPS)

#define FLAMED_CACHED_RULES 65536 /* 512 KiB: one for each lower half of a file offset */
#define FLAMED_NO_RULE 0xffffffffu
/* The number of the only rule with FLAMED_CFA_PENDING. */
#define FLAMED_PENDING_RULE 2

#define FLAMED_BLOCK_MAPPINGS 1024 /* 32 KiB: the limit of one process; a browser has about 200 */
#define FLAMED_MAPPING_STEPS 10
#define FLAMED_MAPPING_BLOCKS 128 /* 4 MiB: 131,072 mappings */
#define FLAMED_MAX_PROCESSES 32768

/*
 * How long the daemon waits before it reuses a place that a run of the program may still read. A run that takes longer
 * (a hypervisor can stop a CPU at any point) may have read anything, and discards its stack.
 */
#define FLAMED_GRACE_NS 20000000ULL

enum flamed_module_state {
  FLAMED_MODULE_PENDING = 0, /* its rows are being built, or were evicted */
  FLAMED_MODULE_READY = 1,
  FLAMED_MODULE_WITHOUT_ROWS = 2, /* there is no unwind information: frame pointers */
};

/* No process with user space has it: the first one was started by an exec, and the others inherit their parent's. */
#define FLAMED_ANY_EXEC 0

/* Module numbers without an entry in the module table. */
#define FLAMED_NO_MODULE 0xffffffffu /* memory without a file: frame pointers */

struct flamed_mapping {
  __u64 start; /* process addresses [start, end) */
  __u64 end;
  __u64 file_offset; /* of `start` */
  __u32 module;      /* index of the module table, or FLAMED_NO_MODULE */
  __u32 reserved;
};

struct flamed_unwind_module {
  __u32 state;      /* enum flamed_module_state; written last */
  __u32 first_page; /* index of the page table */
  __u32 page_count;
  __u32 base_page;    /* file offset >> FLAMED_PAGE_SHIFT of the first page */
  __u32 last_sampled; /* seconds of CLOCK_MONOTONIC, 0: never; written by the program */
  __u32 noticed;      /* 1: the daemon was notified that the rows are missing; set by the program */
  __u32 edition;      /* a new number each time that rows of any module are entered; not 0 */
  __u32 reserved;
};

struct flamed_unwind_page {
  __u32 slab;
  __u32 first_row;
  __u32 row_count;  /* at most FLAMED_MAX_PAGE_ROWS */
  __u32 carry_rule; /* the rule from the page's start up to its first row */
};

/* Bit for bit unwinder::Rule (unwinder/rule.h), which explains it. */
struct flamed_unwind_rule {
  __u8 cfa;
  __u8 fp;
  __u8 ra;
  __u8 signal_frame;
  __u8 ra_signed;
  __u8 base_words;
  __u8 other_register;
  __u8 plt_threshold;
  __s32 cfa_offset;
  __s32 cfa_addend;
  __s32 fp_offset;
  __s32 ra_offset;
};

enum flamed_cfa_kind {
  FLAMED_CFA_NONE = 0,
  FLAMED_CFA_UNSUPPORTED = 1,
  FLAMED_CFA_OUTERMOST = 2,
  FLAMED_CFA_SP_OFFSET = 3,
  FLAMED_CFA_FP_OFFSET = 4,
  FLAMED_CFA_SP_DEREF = 5,
  FLAMED_CFA_FP_DEREF = 6,
  FLAMED_CFA_PLT = 7,
  FLAMED_CFA_SIGNAL_FRAME = 8,
  FLAMED_CFA_REGISTER_OFFSET = 9,
  FLAMED_CFA_REGISTER_DEREF = 10,
  FLAMED_CFA_GO_SAVED = 11,
  FLAMED_CFA_GO_DEPTH = 12,
  FLAMED_CFA_GO_FRAME = 13,
  FLAMED_CFA_PENDING = 14,
};

enum flamed_fp_kind {
  FLAMED_FP_SAME = 0,
  FLAMED_FP_AT_CFA = 1,
  FLAMED_FP_AT_FP = 2,
  FLAMED_FP_AT_SP = 3,
  FLAMED_FP_IN_REGISTER = 4,
  FLAMED_FP_UNKNOWN = 5,
};
#define FLAMED_FP_KINDS 8 /* or fewer; a power of two */

enum flamed_ra_kind {
  FLAMED_RA_AT_CFA = 0,
  FLAMED_RA_IN_LR = 1,
  FLAMED_RA_AT_SP = 2,
  FLAMED_RA_IN_REGISTER = 3,
  FLAMED_RA_IN_GO = 4,
  FLAMED_RA_AT_FP = 5,
};
#define FLAMED_RA_KINDS 8 /* or fewer; a power of two */

#define FLAMED_SAME_BASE 0xff /* flamed_unwind_rule.base_words */

/* unwinder::GoLayout */
#define FLAMED_GO_STACK_END 8
#define FLAMED_GO_THREAD 48
#define FLAMED_GO_SAVED_SP 56
#define FLAMED_MAX_STACK_SWITCHES 16

/* Value of the process table; the key is the tgid. Written only by the daemon. */
struct flamed_process {
  __u64 start_ticks; /* start_boottime in units of 10 ms: differs for a later process with the same pid */
  __u32 block;       /* index of the mapping blocks */
  __u32 first;       /* its first mapping in the block */
  __u32 count;       /* 0: a known process that is not unwound by tables */
  __u32 tgid;        /* the key once more: a removed entry may be reused for another process while it is read */
  /*
   * flamed_sample.exec_id of the mappings' program. After an exec it differs, and the mappings are out of date.
   * FLAMED_ANY_EXEC: not known, since there was no sample yet. If the mappings are out of date, the daemon sees by
   * `tables` which ones the stack was walked by.
   */
  __u64 exec_id;
  __u32 tables;  /* number of this edition of the process's tables, 16 bits: samples have it */
  __u32 runtime; /* number of the layout of its runtime's frames, with FLAMED_SLOTS and FLAMED_INTERPRETED if it is of
                    that kind; 0: it has none */
  __u64 runtime_base; /* what was added to the addresses of the runtime's module when it was loaded */
};

/* A notice of the program for the daemon, through a ring that wakes it. */
/* flamed_notice.reason, in addition to enum flamed_user_end: a ring of samples is more than half full. */
#define FLAMED_RING_FILLS 255
/* A runtime's code object was met that was not met before. */
#define FLAMED_NEW_CODE 254

struct flamed_notice {
  __u32 tgid;
  __u32 reason; /* FLAMED_END_NO_PROCESS, FLAMED_END_NO_MAPPING, FLAMED_END_ROWS_PENDING, or one of these two */
};

FLAMED_STATIC_ASSERT(sizeof(struct flamed_mapping) == 32, "blocks hold mappings back to back");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_unwind_module) == 32, "no hidden padding");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_unwind_page) == 16, "no hidden padding");
FLAMED_STATIC_ASSERT(sizeof(struct flamed_unwind_rule) == 24, "no hidden padding");

#endif /* FLAMED_BPF_UNWIND_TABLES_H */
