/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The running kernel's own unwind tables (ORC, on x86-64): their addresses and their layout. Written by the daemon
 * (daemon/sampler/kernel_orc.cc), read by kernel_walk.h.
 */
#ifndef FLAMED_BPF_KERNEL_TABLES_H
#define FLAMED_BPF_KERNEL_TABLES_H

#include <linux/types.h>

/*
 * The layouts of struct orc_entry in different kernels (arch/x86/include/asm/orc_types.h). All begin with two offsets
 * of 16 bits and two registers of 4.
 */
enum flamed_orc_layout {
  FLAMED_ORC_UNKNOWN = 0,
  FLAMED_ORC_END = 1,        /* up to 6.2: type of 2 bits, end */
  FLAMED_ORC_SIGNAL_END = 2, /* 6.3: type of 2 bits, signal, end */
  FLAMED_ORC_SIGNAL = 3,     /* since 6.4: type of 3 bits, signal; another numbering of the types */
  FLAMED_ORC_RENUMBERED = 4, /* 7.2 at the latest: the same with another numbering of the registers */
};

/* One row of __start_orc_unwind. */
struct flamed_orc_row {
  __s16 sp_offset;
  __s16 bp_offset;
  __u16 bits; /* from the lowest: sp_reg, bp_reg, and the fields of the layout */
} __attribute__((packed));

/* sp_reg and bp_reg: the base of an offset. In all layouts but the last. */
#define FLAMED_ORC_REG_UNDEFINED 0 /* of bp: it is unchanged */
#define FLAMED_ORC_REG_PREV_SP 1   /* the CFA */
#define FLAMED_ORC_REG_BP 4
#define FLAMED_ORC_REG_SP 5
#define FLAMED_ORC_REG_BP_INDIRECT 8 /* the CFA is in memory: *(bp + offset) */
#define FLAMED_ORC_REG_SP_INDIRECT 9 /* *sp + offset */

/* Steps of a search: up to 2^24 rows. Kernels have 370,000 to 480,000. */
#define FLAMED_ORC_SEARCH_STEPS 24
#define FLAMED_ORC_TRAMPOLINES 4
#define FLAMED_ORC_BLOCK_SHIFT 10 /* text is searched in blocks of 1 KiB: 19,000 of them, 75 KiB */

/* Entries of the program's map of blocks: one for each block, one for the last one's end, and one for the layout. */
#define FLAMED_ORC_BLOCKS(text_bytes) (((text_bytes) >> FLAMED_ORC_BLOCK_SHIFT) + 3)

/* Addresses are the kernel's. */
struct flamed_kernel_orc {
  __u64 row_places; /* __s32 for each row, ascending: the start of its text, relative to the address of this number */
  __u64 rows;       /* flamed_orc_row for each */
  __u64 row_count;
  __u64 text_start; /* of the kernel itself, without modules */
  __u64 text_end;
  __u64 function; /* a C function; the row of its first instruction shows the numbering of registers */
  /*
   * The code with which tracers replace return addresses; only the kernel's own unwinder finds the original ones. 0:
   * none.
   */
  __u64 trampolines[FLAMED_ORC_TRAMPOLINES];
  __u32 layout; /* enum flamed_orc_layout */
  __u32 reserved;
};

#endif /* FLAMED_BPF_KERNEL_TABLES_H */
