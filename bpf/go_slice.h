/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which goroutine a system stack of Go's works for: see unwinder::GoLayout. Where the goroutine is in an m depends on
 * the version of Go, which only the daemon knows, later. Here the first g of this m is taken, behind the one for
 * signals: if it is another one, a walk does not find what it needs, and ends.
 */
#ifndef FLAMED_BPF_GO_SLICE_H
#define FLAMED_BPF_GO_SLICE_H

#include <bpf/bpf_helpers.h>

#include "stack_slice.h"
#include "thread_pointer.h"
#include "unwind_tables.h"

/* In an m: behind the g for signals and its stack. */
#define FLAMED_GO_FIRST_WORD 16

FLAMED_STATIC_ASSERT(FLAMED_GO_SAVED_SP / 8 < FLAMED_GO_G_WORDS, "the words of a g have its stack pointer");

static __always_inline int is_in_stack(const __u64* g, __u64 address) {
  return address >= g[0] && address < g[FLAMED_GO_STACK_END / 8];
}

/*
 * Sets go->thread_pointer if `registers` are in a system stack of Go's. Returns the goroutine's stack pointer; 0: there
 * is no goroutine. For any other program it takes two or three reads.
 */
static __always_inline __u64 find_goroutine(struct flamed_slice_go* go, const __u64* registers) {
  go->thread_pointer = 0;
#if defined(__TARGET_ARCH_x86)
  const __u64 pointer = thread_pointer();
  __u64* words = go->goroutine_words;
  __u64 thread = 0;

  if (!pointer || bpf_probe_read_user(&go->current, 8, (void*)(pointer - 8))) return 0;
  if (bpf_probe_read_user(&go->thread, 8, (void*)(go->current + FLAMED_GO_THREAD))) return 0;
  if (bpf_probe_read_user(go->thread_words, sizeof(go->thread_words), (void*)go->thread)) return 0;
  go->system = go->thread_words[0];
  if (bpf_probe_read_user(go->system_words, sizeof(go->system_words), (void*)go->system)) return 0;
  if (go->system_words[FLAMED_GO_THREAD / 8] != go->thread) return 0;
  if (!is_in_stack(go->system_words, registers[FLAMED_SP_REGISTER])) return 0;
  go->thread_pointer = pointer;
  go->goroutine = go->current;
  if (go->current != go->system) {
    /* In a call of the vdso, which leaves the g as it is. The frame pointer has not changed, or is not known. */
    if (bpf_probe_read_user(words, sizeof(go->goroutine_words), (void*)go->goroutine)) return 0;
    const __u64 fp = registers[FLAMED_FP_REGISTER];
    if (is_in_stack(words, fp)) return fp;
    const __u64 last = words[FLAMED_GO_STACK_END / 8] - FLAMED_SLICE_GO_BLOCKS * FLAMED_SLICE_BLOCK_BYTES;
    return is_in_stack(words, last) ? last : words[0];
  }
  for (__u32 i = FLAMED_GO_FIRST_WORD; i < FLAMED_GO_M_WORDS; i++) {
    const __u64 word = go->thread_words[i];
    if (!word || word == go->system) continue;
    if (bpf_probe_read_user(&thread, 8, (void*)(word + FLAMED_GO_THREAD)) || thread != go->thread) continue;
    go->goroutine = word;
    return bpf_probe_read_user(words, sizeof(go->goroutine_words), (void*)word) ? 0 : words[FLAMED_GO_SAVED_SP / 8];
  }
  go->goroutine = 0;
#endif
  return 0;
}

#endif /* FLAMED_BPF_GO_SLICE_H */
