/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies a slice of the running thread's user stack: see stack_slice.h. */
#ifndef FLAMED_BPF_SLICE_STACK_H
#define FLAMED_BPF_SLICE_STACK_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_types.h"
#include "bpf/kernel/opaque.h"
#include "bpf/kernel/pointer_kinds.h"
#include "bpf/kernel/user_registers.h"
#include "bpf/stack_slice.h"
#include "go_slice.h"

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
 * Copies the blocks of `part`, up to the first one that is not in memory, and says in part->bytes how much that was.
 * Returns the number of blocks in use.
 */
static __always_inline __u32 put_part(struct flamed_slice_ring* ring, __u64 place, struct flamed_slice_part* part,
                                      __u32 most_blocks) {
  const __u64 start = part->start;
  __u64 bytes = part->bytes;
  __u32 blocks = 0;

  if (bytes > (__u64)most_blocks * FLAMED_SLICE_BLOCK_BYTES) bytes = (__u64)most_blocks * FLAMED_SLICE_BLOCK_BYTES;
  for (__u32 i = 0; i < FLAMED_SLICE_BLOCKS; i++) {
    /* Nothing that a block changes but `blocks`: the verifier would go through each combination of block sizes. */
    const __u64 done = (__u64)i * FLAMED_SLICE_BLOCK_BYTES;
    if (bytes <= done) break;
    __u64 size = bytes - done;
    FLAMED_OPAQUE(size);
    if (size > FLAMED_SLICE_BLOCK_BYTES) size = FLAMED_SLICE_BLOCK_BYTES;
    struct flamed_slice_block* to = &ring->blocks[(place + i) & (FLAMED_SLICE_RING_BLOCKS - 1)];
    if (bpf_probe_read_user(to, (__u32)size, (void*)(start + done))) break;
    blocks++;
  }
  part->bytes = blocks;
  /* From memory, so that the verifier goes on with one state, however the loop ended. */
  barrier();
  blocks = (__u32)part->bytes;
  const __u64 copied = (__u64)blocks * FLAMED_SLICE_BLOCK_BYTES;
  part->bytes = copied < bytes ? copied : bytes;
  return blocks;
}

/* From the stack pointer's block on. */
static __always_inline void begin_part(struct flamed_slice_part* part, __u64 sp, __u64 end) {
  const __u64 start = sp & ~(__u64)(FLAMED_SLICE_BLOCK_BYTES - 1);
  part->start = start;
  part->bytes = end > start ? end - start : 0;
}

/*
 * Copies blocks from the stack pointer on, up to the stack's end, and those of Go's other stack. Returns the number of
 * blocks in use, or -1 if there is no room.
 */
static __always_inline long put_slice(struct flamed_slice_ring* ring, struct flamed_sample* sample,
                                      const __u64* registers) {
  const __u64 head = ring->head;
  const __u64 used = head - *(volatile __u64*)&ring->tail;
  const __u64 sp = registers[FLAMED_SP_REGISTER];
  struct flamed_slice_head* first = (struct flamed_slice_head*)&ring->blocks[head & (FLAMED_SLICE_RING_BLOCKS - 1)];
  __u64 end = end_of_stack(sp);
  struct go_stacks stacks = {};
  __u32 most = end == ~0ULL ? FLAMED_SLICE_OPEN_BLOCKS : FLAMED_SLICE_BLOCKS;
  __u32 most_other = 0;

  if (used > FLAMED_SLICE_RING_BLOCKS - 1 - FLAMED_SLICE_BLOCKS) return -1;
  find_go_stacks(&first->go, registers, &stacks);
  if (first->go.thread_pointer) {
    if (!stacks.on_system || end == ~0ULL) end = stacks.end;
    most = stacks.on_system ? FLAMED_SLICE_SYSTEM_BLOCKS : FLAMED_SLICE_OPEN_BLOCKS;
    most_other = stacks.on_system ? FLAMED_SLICE_OPEN_BLOCKS : FLAMED_SLICE_SYSTEM_BLOCKS;
  }
  begin_part(&first->parts[0], sp, end);
  begin_part(&first->parts[1], stacks.other_sp, stacks.other_sp ? stacks.other_end : 0);
  __u32 blocks = 1 + put_part(ring, head + 1, &first->parts[0], most);
  blocks += put_part(ring, head + blocks, &first->parts[1], most_other);
  for (__u32 i = 0; i < FLAMED_REGISTERS; i++) first->registers[i] = registers[i];
  sample->slice_blocks = (__u16)blocks;
  sample->slice_place = (__u16)(head & (FLAMED_SLICE_RING_BLOCKS - 1));
  /* Ordered like the samples' head, which comes after it: see ring_put(). */
  __asm__ volatile("" ::: "memory");
  *(volatile __u64*)&ring->head = head + blocks;
  return (long)(used + blocks);
}

#endif /* FLAMED_BPF_SLICE_STACK_H */
