/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two stacks of a thread of a Go program: see unwinder::GoLayout. Where the goroutine is in an m depends on the
 * version of Go, which only the daemon knows, later. Here the first g of this m is taken, behind the one for signals:
 * if it is another one, a walk does not find what it needs, and ends.
 */
#ifndef FLAMED_BPF_GO_SLICE_H
#define FLAMED_BPF_GO_SLICE_H

#include <bpf/bpf_helpers.h>

#include "bpf/kernel/thread_pointer.h"
#include "bpf/stack_slice.h"
#include "bpf/unwind_tables.h"

/* In an m: behind the g for signals and its stack. */
#define FLAMED_GO_FIRST_WORD 16

/* What the runtime takes for the end of a thread's stack may be in the frame of its first function, below those of C.
 */
#define FLAMED_GO_ABOVE_END 2048

FLAMED_STATIC_ASSERT(FLAMED_GO_SAVED_SP / 8 < FLAMED_GO_G_WORDS, "the words of a g have its stack pointer");

/* The stack of the stack pointer ends at `end`, the other one is from `other_sp` (0: there is none) to `other_end`. */
struct go_stacks {
  __u64 end;
  __u64 other_sp;
  __u64 other_end;
  __u32 on_system;
};

static __always_inline int is_in_stack(const __u64* g, __u64 address) {
  return address >= g[0] && address < g[FLAMED_GO_STACK_END / 8];
}

/*
 * In a call of the vdso, which is on the system stack and leaves the g as it is, so that no stack pointer is saved: the
 * frame pointer has not changed, or is not known.
 */
static __always_inline __u64 sp_before_vdso(const __u64* goroutine, const __u64* registers) {
  const __u64 fp = registers[FLAMED_FP_REGISTER];
  const __u64 last = goroutine[FLAMED_GO_STACK_END / 8] - FLAMED_SLICE_OPEN_BLOCKS * FLAMED_SLICE_BLOCK_BYTES;
  if (is_in_stack(goroutine, fp)) return fp;
  return is_in_stack(goroutine, last) ? last : goroutine[0];
}

/* The system stack works for the goroutine that the m says. Its stack pointer; 0: there is none. */
static __always_inline __u64 find_goroutine_of(struct flamed_slice_go* go) {
  __u64 thread = 0;
  for (__u32 i = FLAMED_GO_FIRST_WORD; i < FLAMED_GO_M_WORDS; i++) {
    const __u64 word = go->thread_words[i];
    if (!word || word == go->system) continue;
    if (bpf_probe_read_user(&thread, 8, (void*)(word + FLAMED_GO_THREAD)) || thread != go->thread) continue;
    if (bpf_probe_read_user(go->goroutine_words, sizeof(go->goroutine_words), (void*)word)) return 0;
    go->goroutine = word;
    return go->goroutine_words[FLAMED_GO_SAVED_SP / 8];
  }
  return 0;
}

/* Sets go->thread_pointer and `stacks` if this is a thread of a Go program. For any other it takes two or three reads.
 */
static __always_inline void find_go_stacks(struct flamed_slice_go* go, const __u64* registers,
                                           struct go_stacks* stacks) {
  go->thread_pointer = 0;
#if defined(__TARGET_ARCH_x86)
  const __u64 pointer = thread_pointer();
  const __u64 sp = registers[FLAMED_SP_REGISTER];

  if (!pointer || bpf_probe_read_user(&go->current, 8, (void*)(pointer - 8))) return;
  if (bpf_probe_read_user(&go->thread, 8, (void*)(go->current + FLAMED_GO_THREAD))) return;
  if (bpf_probe_read_user(go->thread_words, sizeof(go->thread_words), (void*)go->thread)) return;
  go->system = go->thread_words[0];
  if (bpf_probe_read_user(go->system_words, sizeof(go->system_words), (void*)go->system)) return;
  if (go->system_words[FLAMED_GO_THREAD / 8] != go->thread) return;
  go->goroutine = go->current == go->system ? 0 : go->current;
  if (go->goroutine && bpf_probe_read_user(go->goroutine_words, sizeof(go->goroutine_words), (void*)go->goroutine))
    return;
  stacks->on_system = is_in_stack(go->system_words, sp);
  if (stacks->on_system) {
    stacks->other_sp = go->goroutine ? sp_before_vdso(go->goroutine_words, registers) : find_goroutine_of(go);
    stacks->end = go->system_words[FLAMED_GO_STACK_END / 8] + FLAMED_GO_ABOVE_END;
    stacks->other_end = go->goroutine_words[FLAMED_GO_STACK_END / 8];
  } else if (go->goroutine && is_in_stack(go->goroutine_words, sp)) {
    stacks->other_sp = go->system_words[FLAMED_GO_SAVED_SP / 8];
    stacks->end = go->goroutine_words[FLAMED_GO_STACK_END / 8];
    stacks->other_end = go->system_words[FLAMED_GO_STACK_END / 8] + FLAMED_GO_ABOVE_END;
  } else {
    return; /* the one for signals */
  }
  go->thread_pointer = pointer;
#endif
}

#endif /* FLAMED_BPF_GO_SLICE_H */
