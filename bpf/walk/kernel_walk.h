/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks a kernel stack by the kernel's own unwind tables, with the same result as bpf_get_stack(). The kernel's
 * unwinder reads three tables for each frame, which are rarely in the caches; this walk reads one small table of its
 * own. It supports only the kernel's core text. bpf_get_stack() walks a stack that goes through anything else (a
 * module, a BPF program, a trampoline of ftrace).
 */
#ifndef FLAMED_BPF_KERNEL_WALK_H
#define FLAMED_BPF_KERNEL_WALK_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/kernel/opaque.h"
#include "kernel_hops.h"

/* bpf_get_stack() walks deeper ones: the verifier follows each frame. */
#define FLAMED_KERNEL_WALK_FRAMES 48
/* Rows that are copied at once; a block of text has 26 on average. */
#define FLAMED_ORC_COPIED_ROWS 64
#define FLAMED_ORC_COPIED_STEPS 6
#define FLAMED_ORC_NO_ROW (~0ULL)

/* Set before loading. */
const volatile struct flamed_kernel_orc kernel_orc SEC(".rodata.kernel_orc") = {};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct kernel_sites);
} kernel_sites SEC(".maps");

/*
 * The row at the start of each block of text, + 1; 0: not looked up yet. With it a search reads two or three cache
 * lines instead of a dozen cold ones. The last entry is the layout, see orc_layout_in_force(). All CPUs write the same
 * values. Its size is set before loading.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} orc_blocks SEC(".maps");

struct orc_places {
  __s32 distances[FLAMED_ORC_COPIED_ROWS];
};

/* Some of kernel_orc.row_places, copied at once. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct orc_places);
} orc_copies SEC(".maps");

/* 1 if the row begins after the address. */
static __always_inline __u64 row_is_behind(__u64 place, __s32 distance, __u64 address) {
  __u64 is_behind = (address - (place + (__u64)(__s64)distance)) >> 63;
  FLAMED_OPAQUE(is_behind);
  return is_behind;
}

/*
 * The last of `left` rows from `base` on that begins at or before the address: of several at one address the last one
 * counts. Not static, so that the verifier follows it only once. ~0: a row can't be read.
 */
__attribute__((noinline)) __u64 search_orc_rows(__u64 base, __u64 left, __u64 address) {
  for (int step = 0; step < FLAMED_ORC_SEARCH_STEPS && left > 1; step++) {
    const __u64 half = left >> 1;
    const __u64 place = kernel_orc.row_places + (base + half) * sizeof(__s32);
    __s32 distance = 0;
    if (bpf_probe_read_kernel(&distance, sizeof(distance), (void*)place)) return FLAMED_ORC_NO_ROW;
    base += half * (1 - row_is_behind(place, distance, address));
    left -= half;
  }
  return base;
}

static __always_inline __u64 row_of_block(__u32 block) {
  __u32* known = bpf_map_lookup_elem(&orc_blocks, &block);
  if (!known) return FLAMED_ORC_NO_ROW;
  if (*known) return *known - 1;
  const __u64 address = kernel_orc.text_start + ((__u64)block << FLAMED_ORC_BLOCK_SHIFT);
  const __u64 row = search_orc_rows(0, kernel_orc.row_count, address);
  if (row != FLAMED_ORC_NO_ROW) *known = (__u32)row + 1;
  return row;
}

/* The row for an address of the kernel's text, or FLAMED_ORC_NO_ROW. */
static __always_inline __u64 find_orc_row(__u64 address) {
  const __u32 block = (__u32)((address - kernel_orc.text_start) >> FLAMED_ORC_BLOCK_SHIFT);
  const __u64 first = row_of_block(block);
  const __u64 next = row_of_block(block + 1);
  if (first == FLAMED_ORC_NO_ROW || next == FLAMED_ORC_NO_ROW) return FLAMED_ORC_NO_ROW;
  __u64 left = next - first + 1;
  if (left > FLAMED_ORC_COPIED_ROWS) return search_orc_rows(first, left, address);

  __u32 zero = 0;
  struct orc_places* copy = bpf_map_lookup_elem(&orc_copies, &zero);
  const __u64 places = kernel_orc.row_places + first * sizeof(__s32);
  if (!copy || bpf_probe_read_kernel(copy->distances, sizeof(copy->distances), (void*)places)) return FLAMED_ORC_NO_ROW;
  __u64 base = 0;
  FLAMED_UNROLL
  for (int step = 0; step < FLAMED_ORC_COPIED_STEPS; step++) {
    const __u64 half = left >> 1;
    const __u64 middle = (base + half) & (FLAMED_ORC_COPIED_ROWS - 1);
    base += half * (1 - row_is_behind(places + middle * sizeof(__s32), copy->distances[middle], address));
    left -= half;
  }
  return first + base;
}

/* kernel_orc.layout, or the detected one of the two layouts that have the same kernel types; detected once. */
static __always_inline __u32 orc_layout_in_force(void) {
  if (kernel_orc.layout != FLAMED_ORC_SIGNAL) return kernel_orc.layout;
  const __u32 last = (__u32)FLAMED_ORC_BLOCKS(kernel_orc.text_end - kernel_orc.text_start) - 1;
  __u32* known = bpf_map_lookup_elem(&orc_blocks, &last);
  if (!known) return FLAMED_ORC_UNKNOWN;
  if (*known) return *known;
  struct flamed_orc_row row = {};
  const __u64 number = find_orc_row(kernel_orc.function);
  if (number == FLAMED_ORC_NO_ROW) return FLAMED_ORC_UNKNOWN;
  if (bpf_probe_read_kernel(&row, sizeof(row), (void*)(kernel_orc.rows + number * sizeof(row))))
    return FLAMED_ORC_UNKNOWN;
  *known = layout_of_first_row(&row);
  return *known;
}

/*
 * Looks up an address of the kernel's text in the tables, and caches the result. `address` is its lower half. Not
 * static, see search_orc_rows().
 */
__attribute__((noinline)) __u32 search_kernel_hop(__u32 address) {
  const __u64 wanted = kernel_orc.text_start + (__u32)(address - (__u32)kernel_orc.text_start);
  __u32 hop = FLAMED_KERNEL_HOP_UNSUPPORTED;
  struct flamed_orc_row row = {};
  __u32 zero = 0;

  struct kernel_sites* sites = bpf_map_lookup_elem(&kernel_sites, &zero);
  const __u64 number = find_orc_row(wanted);
  if (!sites || number == FLAMED_ORC_NO_ROW) return hop;
  if (bpf_probe_read_kernel(&row, sizeof(row), (void*)(kernel_orc.rows + number * sizeof(row)))) return hop;
  hop = hop_of_orc_row(&row, orc_layout_in_force());
  for (int i = 0; i < FLAMED_ORC_TRAMPOLINES; i++) {
    const __u64 trampoline = kernel_orc.trampolines[i];
    if (trampoline && wanted + 1 - trampoline <= 1) hop = FLAMED_KERNEL_HOP_UNSUPPORTED;
  }
  remember_kernel_hop(sites, address, hop);
  return hop;
}

/*
 * Fills `addresses`, which has room for FLAMED_KERNEL_WALK_FRAMES, with the stack of interrupted kernel code. Returns
 * the number of frames, or 0 if bpf_get_stack() has to walk the stack. `limit` is the limit of bpf_get_stack().
 */
static __always_inline __u32 walk_kernel_stack(struct kernel_frame* frame, __u64* addresses, __u32 limit,
                                               struct stack_window* window) {
  __u32 zero = 0;
  struct kernel_sites* sites = bpf_map_lookup_elem(&kernel_sites, &zero);
  if (!sites) return 0;
  fetch_kernel_sites(sites);
  window->start = 0;
  for (__u64 i = 0; i < FLAMED_KERNEL_WALK_FRAMES && i < limit; i++) { /* 64 bits: see walk_user_stack() */
    addresses[i] = frame->ip;
    /* A return address belongs to the call before it, whose row may differ. */
    const __u64 wanted = frame->ip - 1 + frame->exact;
    if (wanted - kernel_orc.text_start >= kernel_orc.text_end - kernel_orc.text_start) return 0;
    __u32 hop = find_kernel_hop(sites, (__u32)wanted);
    if (!hop) hop = search_kernel_hop((__u32)wanted);
    const __u32 result = step_by_kernel_hop(frame, hop, window);
    if (result == FLAMED_KERNEL_STEP_END) return (__u32)i + 1;
    if (result != FLAMED_KERNEL_STEP_NEXT) return 0;
  }
  return 0;
}

#endif /* FLAMED_BPF_KERNEL_WALK_H */
