/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks a user stack by frame pointers. Unlike bpf_get_stack() it reports how the walk ended, so that a broken chain is
 * not taken for a whole stack.
 *
 * Code with frame pointers stores, at the address in the frame pointer, the caller's frame pointer followed by the
 * return address (x86-64 psABI 3.2.2, AAPCS64 6.4.6). The outermost frame holds 0.
 */
#ifndef FLAMED_BPF_FRAME_POINTER_WALK_H
#define FLAMED_BPF_FRAME_POINTER_WALK_H

#include "events.h"
#include "user_registers.h"

struct frame_record {
  __u64 caller_fp;
  __u64 return_address;
};

static __always_inline long read_frame_record(__u64 fp, __u32 is_32bit, struct frame_record* out) {
  if (is_32bit) {
    __u32 half[2];
    long err = bpf_probe_read_user(half, sizeof(half), (void*)fp);
    out->caller_fp = half[0];
    out->return_address = half[1];
    return err;
  }
  return bpf_probe_read_user(out, sizeof(*out), (void*)fp);
}

/*
 * Fills `addresses`, which has room for FLAMED_MAX_USER_FRAMES, and sample->user_count and user_end. Both are updated
 * in memory rather than in registers: then the verifier has one state after the loop, not one per iteration.
 */
static __always_inline void walk_frame_pointers_of(struct flamed_sample* sample, __u64* addresses,
                                                   const struct user_registers* regs, const __u32 is_32bit) {
  /* A frame record is above the stack pointer, and each caller's above its callee's. */
  __u64 lowest = regs->sp;
  __u64 fp = regs->fp;

  addresses[0] = regs->pc;
  sample->user_count = 1;
  for (__u32 i = 1; i < FLAMED_MAX_USER_FRAMES; i++) {
    struct frame_record record = {};
    if (fp == 0) {
      sample->user_end = FLAMED_END_OUTERMOST;
      return;
    }
    sample->user_end = FLAMED_END_BROKEN_POINTER;
    if (fp < lowest || (fp & 3)) return;
    if (read_frame_record(fp, is_32bit, &record)) {
      sample->user_end = FLAMED_END_UNREADABLE;
      return;
    }
    if (record.return_address == 0) {
      if (record.caller_fp == 0) sample->user_end = FLAMED_END_OUTERMOST;
      return;
    }
    addresses[i] = record.return_address;
    sample->user_count = (__u16)(i + 1);
    lowest = fp + 1;
    fp = record.caller_fp;
  }
  sample->user_end = fp == 0 ? FLAMED_END_OUTERMOST : FLAMED_END_DEPTH_LIMIT;
}

/* One loop for each word size: a test inside the loop would square the verifier's work. */
static __always_inline void walk_frame_pointers(struct flamed_sample* sample, __u64* addresses,
                                                const struct user_registers* regs) {
  if (regs->is_32bit)
    walk_frame_pointers_of(sample, addresses, regs, 1);
  else
    walk_frame_pointers_of(sample, addresses, regs, 0);
}

#endif /* FLAMED_BPF_FRAME_POINTER_WALK_H */
