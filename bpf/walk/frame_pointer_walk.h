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

#include "bpf/events.h"
#include "bpf/kernel/opaque.h"
#include "bpf/kernel/user_registers.h"
#include "return_address.h"

struct pointer_walk {
  __u64 fp;     /* of the next frame record, in the walked program's memory */
  __u64 lowest; /* it is above the stack pointer, and each caller's above its callee's */
  __u32 is_32bit;
};

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

/* Sets the innermost frame, in `addresses`, which has room for FLAMED_MAX_USER_FRAMES. */
static __always_inline void begin_pointer_walk(struct pointer_walk* walk, struct flamed_sample* sample,
                                               __u64* addresses, const struct user_registers* regs) {
  walk->fp = regs->fp;
  walk->lowest = regs->sp;
  walk->is_32bit = regs->is_32bit;
  addresses[0] = regs->pc;
  sample->user_count = 1;
  sample->user_end = FLAMED_END_DEPTH_LIMIT;
}

/*
 * Adds the next frame. Returns 0 at the walk's end, with the reason in sample->user_end. All is kept in memory rather
 * than in registers: so the verifier has one state after a loop, not one for each iteration.
 */
static __always_inline int next_by_pointer(struct pointer_walk* walk, struct flamed_sample* sample, __u64* addresses) {
  const __u64 fp = walk->fp;
  __u32 count = sample->user_count;
  struct frame_record record = {};

  FLAMED_OPAQUE(count); /* so that the register that is checked is used */
  if (fp == 0) {
    sample->user_end = FLAMED_END_OUTERMOST;
    return 0;
  }
  if (count >= FLAMED_MAX_USER_FRAMES) return 0;
  if (fp < walk->lowest || (fp & 3)) {
    sample->user_end = FLAMED_END_BROKEN_POINTER;
    return 0;
  }
  if (read_frame_record(fp, walk->is_32bit, &record)) {
    sample->user_end = FLAMED_END_UNREADABLE;
    return 0;
  }
  if (record.return_address == 0) {
    sample->user_end = record.caller_fp == 0 ? FLAMED_END_OUTERMOST : FLAMED_END_BROKEN_POINTER;
    return 0;
  }
  addresses[count] = without_signature(record.return_address);
  sample->user_count = (__u16)(count + 1);
  walk->lowest = fp + 1;
  walk->fp = record.caller_fp;
  return 1;
}

#endif /* FLAMED_BPF_FRAME_POINTER_WALK_H */
