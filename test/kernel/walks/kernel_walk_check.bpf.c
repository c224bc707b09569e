/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks each sampled kernel stack by bpf/walk/kernel_walk.h and by bpf_get_stack(), and compares the results. For
 * kernel_walk_test.cc.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

#include "bpf/events.h"
#include "bpf/kernel/user_registers.h"
#include "bpf/walk/kernel_walk.h"
#include "kernel_walk_check.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 depth_limit = FLAMED_MAX_KERNEL_FRAMES;

struct check {
  __u64 walked[FLAMED_MAX_KERNEL_FRAMES];
  __u64 kernels[FLAMED_MAX_KERNEL_FRAMES];
  struct stack_window window;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct check);
} checks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct kernel_walk_counts);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct kernel_walk_example);
} examples SEC(".maps");

static __always_inline void keep_example(const struct check* check, __u32 walked, __u32 kernels) {
  __u32 zero = 0;
  struct kernel_walk_example* example = bpf_map_lookup_elem(&examples, &zero);
  if (!example || example->kernels) return;
  example->walked = walked;
  example->kernels = kernels;
  for (__u32 i = 0; i < FLAMED_MAX_KERNEL_FRAMES; i++) {
    example->walked_addresses[i] = check->walked[i];
    example->kernels_addresses[i] = check->kernels[i];
  }
}

SEC("perf_event")
int check_walk(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct check* check = bpf_map_lookup_elem(&checks, &zero);
  struct kernel_walk_counts* count = bpf_map_lookup_elem(&counts, &zero);
  if (!check || !count || registers_are_user(&ctx->regs)) return 0;

  struct user_registers regs;
  registers_read(&ctx->regs, &regs);
  struct kernel_frame frame = {.ip = regs.pc, .sp = regs.sp, .bp = regs.fp, .exact = 1};
  const __u64 began = bpf_ktime_get_ns();
  __u32 walked = walk_kernel_stack(&frame, check->walked, depth_limit, &check->window);
  const __u64 between = bpf_ktime_get_ns();
  const long bytes = bpf_get_stack(ctx, check->kernels, sizeof(check->kernels), 0);
  const __u64 end = bpf_ktime_get_ns();
  const __u32 kernels = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;

  count->samples++;
  if (!walked) {
    if (frame.ip - kernel_orc.text_start >= kernel_orc.text_end - kernel_orc.text_start)
      count->beyond_text++;
    else if (kernels > FLAMED_KERNEL_WALK_FRAMES)
      count->deep++;
    else
      count->unsupported++;
    return 0;
  }
  __u64 difference = walked ^ kernels;
  for (__u32 i = 0; i < FLAMED_KERNEL_WALK_FRAMES; i++) {
    const __u64 is_within = ((__u64)i - walked) >> 63; /* 1 or 0, see unwind_search.h */
    difference |= (check->walked[i] ^ check->kernels[i]) * is_within;
  }
  if (difference) {
    count->unequal++;
    keep_example(check, walked, kernels);
    return 0;
  }
  count->equal++;
  count->frames += walked;
  count->walk_ns += between - began;
  count->kernel_ns += end - between;
  return 0;
}
