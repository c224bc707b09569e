/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slices of user stacks, for walks that have to wait: a program has just begun, or rows are being built. A slice has
 * the thread's registers and the part of its stack from the stack pointer on; of a thread of a Go program a part of
 * both its stacks. It lies in a ring of blocks that the program and the daemon share, beside the CPU's ring of samples,
 * until the daemon takes it and clears the blocks. The sample says where it lies.
 */
#ifndef FLAMED_BPF_STACK_SLICE_H
#define FLAMED_BPF_STACK_SLICE_H

#include "events.h"

/* Divides the size of a page, so that a block of a stack is in memory or it is not. */
#define FLAMED_SLICE_BLOCK_BYTES 1024
#define FLAMED_SLICE_BLOCKS 48        /* of stack in one slice, at most */
#define FLAMED_SLICE_OPEN_BLOCKS 32   /* of a stack whose end is not known: what lies beyond it may be copied as well */
#define FLAMED_SLICE_SYSTEM_BLOCKS 16 /* of a Go thread's system stack, beside those of the goroutine's */
/* A power of two. */
#define FLAMED_SLICE_RING_BLOCKS 512

/* DWARF numbers of x86-64 go up to 16, of arm64 to 32. */
#define FLAMED_REGISTERS 33
#if defined(__TARGET_ARCH_x86) || (defined(__x86_64__) && !defined(__TARGET_ARCH_arm64))
#define FLAMED_PC_REGISTER 16
#define FLAMED_SP_REGISTER 7
#define FLAMED_FP_REGISTER 6
#define FLAMED_BASE_REGISTER 3
#else
#define FLAMED_PC_REGISTER 32
#define FLAMED_SP_REGISTER 31
#define FLAMED_FP_REGISTER 29
#define FLAMED_LR_REGISTER 30
#define FLAMED_BASE_REGISTER 0xff /* there is none */
#endif

/* A part of a stack. It begins with a block of its own. */
struct flamed_slice_part {
  __u64 start; /* address of its first byte: the stack pointer, rounded down to a block */
  __u64 bytes;
};

#define FLAMED_GO_G_WORDS 9
#define FLAMED_GO_M_WORDS 40

/*
 * How a walk goes from one of Go's stacks to the other: what unwinder::GoLayout describes, with the addresses that it
 * was read from.
 */
struct flamed_slice_go {
  __u64 thread_pointer; /* 0: this is no thread of a Go program, and the rest means nothing */
  __u64 current;        /* the word below the thread pointer: a g */
  __u64 thread;         /* its m */
  __u64 system;         /* the g of the system stack */
  __u64 goroutine;      /* the g that the thread works for; 0: none was found */
  __u64 system_words[FLAMED_GO_G_WORDS];
  __u64 thread_words[FLAMED_GO_M_WORDS];
  __u64 goroutine_words[FLAMED_GO_G_WORDS];
};

/* The first block of a slice. Blocks of stack follow, the last of each part perhaps not full. */
struct flamed_slice_head {
  struct flamed_slice_part parts[2];
  __u64 registers[FLAMED_REGISTERS]; /* by DWARF number */
  struct flamed_slice_go go;
  __u64 reserved[FLAMED_SLICE_BLOCK_BYTES / 8 - 4 - FLAMED_REGISTERS - 5 - 2 * FLAMED_GO_G_WORDS - FLAMED_GO_M_WORDS];
};

struct flamed_slice_block {
  __u64 words[FLAMED_SLICE_BLOCK_BYTES / 8];
};

struct flamed_slice_ring {
  __u64 head; /* blocks written so far; advanced by the program when a slice is complete */
  __u64 head_reserved[7];
  __u64 tail; /* blocks taken and cleared so far; advanced by the daemon */
  __u64 tail_reserved[7];
  struct flamed_slice_block blocks[FLAMED_SLICE_RING_BLOCKS];
};

FLAMED_STATIC_ASSERT(sizeof(struct flamed_slice_head) == FLAMED_SLICE_BLOCK_BYTES, "the head is one block");

#endif /* FLAMED_BPF_STACK_SLICE_H */
