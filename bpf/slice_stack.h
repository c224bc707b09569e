/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies a slice of the running thread's user stack: see stack_slice.h. */
#ifndef FLAMED_BPF_SLICE_STACK_H
#define FLAMED_BPF_SLICE_STACK_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel_types.h"
#include "opaque.h"
#include "pointer_kinds.h"
#include "stack_slice.h"
#include "user_registers.h"

/* Stacks of other threads lie at least this far below the first thread's (MIN_GAP in arch/x86/mm/mmap.c). */
#define LARGEST_MAIN_STACK (128ULL << 20)

static __always_inline __u64 stack_top_by_type(void) {
  struct mm_struct___stack* mm = (struct mm_struct___stack*)bpf_get_current_task_btf()->mm;
  const __u64 top = mm ? mm->start_stack : 0;
  end_of_reads();
  return top;
}

static __always_inline __u64 stack_top_by_helper(void) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  struct mm_struct___stack* mm = (struct mm_struct___stack*)BPF_CORE_READ(task, mm);
  return mm ? BPF_CORE_READ(mm, start_stack) : 0;
}

/* The end of the stack that `sp` lies in, below arguments and environment. ~0: not known. */
static __always_inline __u64 end_of_stack(__u64 sp) {
  const __u64 top = read_by_type ? stack_top_by_type() : stack_top_by_helper();
  return top - sp <= LARGEST_MAIN_STACK ? top : ~0ULL;
}

/*
 * Copies blocks from the stack pointer on, up to the stack's end or the first one that is not in memory. Returns the
 * number of blocks in use, or -1 if there is no room.
 */
static __always_inline long put_slice(struct flamed_slice_ring* ring, struct flamed_sample* sample,
                                      const __u64* registers) {
  const __u64 head = ring->head;
  const __u64 used = head - *(volatile __u64*)&ring->tail;
  const __u64 sp = registers[FLAMED_SP_REGISTER];
  const __u64 end = end_of_stack(sp);
  const __u64 start = sp & ~(__u64)(FLAMED_SLICE_BLOCK_BYTES - 1);
  __u64 bytes = end > start ? end - start : 0;
  __u32 blocks = 1;

  if (used > FLAMED_SLICE_RING_BLOCKS - 1 - FLAMED_SLICE_BLOCKS) return -1;
  if (bytes > FLAMED_SLICE_BLOCKS * FLAMED_SLICE_BLOCK_BYTES) bytes = FLAMED_SLICE_BLOCKS * FLAMED_SLICE_BLOCK_BYTES;
  for (__u32 i = 0; i < FLAMED_SLICE_BLOCKS; i++) {
    /* Nothing that a block changes but `blocks`: the verifier would go through each combination of block sizes. */
    const __u64 done = (__u64)i * FLAMED_SLICE_BLOCK_BYTES;
    if (bytes <= done) break;
    __u64 size = bytes - done;
    FLAMED_OPAQUE(size);
    if (size > FLAMED_SLICE_BLOCK_BYTES) size = FLAMED_SLICE_BLOCK_BYTES;
    struct flamed_slice_block* to = &ring->blocks[(head + 1 + i) & (FLAMED_SLICE_RING_BLOCKS - 1)];
    if (bpf_probe_read_user(to, (__u32)size, (void*)(start + done))) break;
    blocks++;
  }
  struct flamed_slice_head* first = (struct flamed_slice_head*)&ring->blocks[head & (FLAMED_SLICE_RING_BLOCKS - 1)];
  first->start = start;
  sample->slice_blocks = (__u16)blocks;
  /* From memory, so that the verifier goes on with one state, however the loop ended. */
  barrier();
  blocks = sample->slice_blocks;
  const __u64 copied = (__u64)(blocks - 1) * FLAMED_SLICE_BLOCK_BYTES;
  first->bytes = copied < bytes ? copied : bytes;
  for (__u32 i = 0; i < FLAMED_REGISTERS; i++) first->registers[i] = registers[i];
  sample->slice_place = (__u16)(head & (FLAMED_SLICE_RING_BLOCKS - 1));
  /* Ordered like the samples' head, which comes after it: see ring_put(). */
  __asm__ volatile("" ::: "memory");
  *(volatile __u64*)&ring->head = head + blocks;
  return (long)(used + blocks);
}

#endif /* FLAMED_BPF_SLICE_STACK_H */
