/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler: runs in the timer interrupt of PERF_COUNT_SW_CPU_CLOCK on each CPU, and puts one variable-length record
 * (events.h) into that CPU's perf buffer. It never waits, never wakes anybody (the buffer's watermark does), and counts
 * what it could not deliver.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/errno.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "events.h"
#include "frame_pointer_walk.h"
#include "kernel_types.h"
#include "user_registers.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* kernel.perf_event_max_stack: bpf_get_stack() stops there without a word. Set before loading. */
const volatile __u32 kernel_depth_limit = FLAMED_MAX_KERNEL_FRAMES;

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} rings SEC(".maps");

/* One per CPU: index is the CPU's number. Size set before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_counters);
} counters SEC(".maps");

struct record {
  struct flamed_sample sample;
  __u64 addresses[FLAMED_MAX_FRAMES];
};

/* Too large for the 512 bytes of BPF stack. A perf_event program does not interrupt itself (bpf_prog_active). */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct record);
} scratch SEC(".maps");

static __always_inline void collect_user_stack(struct bpf_perf_event_data* ctx, struct task_struct* task,
                                               struct record* record) {
  struct flamed_sample* sample = &record->sample;
  struct user_registers regs;

  sample->user_count = 0;
  if (!BPF_CORE_READ(task, mm)) {
    sample->user_end = FLAMED_END_NO_USER_SPACE;
    return;
  }
  if (read_user_registers(ctx, task, &regs)) {
    sample->user_end = FLAMED_END_NO_REGISTERS;
    return;
  }
  if (regs.is_32bit) sample->flags |= FLAMED_COMPAT_32BIT;
  walk_frame_pointers(sample, record->addresses, &regs);
}

static __always_inline void collect_kernel_stack(struct bpf_perf_event_data* ctx, struct record* record) {
  struct flamed_sample* sample = &record->sample;
  __u32 first = sample->user_count;

  sample->kernel_count = 0;
  if (registers_are_user(&ctx->regs)) return;
  if (first > FLAMED_MAX_USER_FRAMES) return; /* for the verifier */
  long bytes = bpf_get_stack(ctx, &record->addresses[first], FLAMED_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
  if (bytes <= 0) return;
  sample->kernel_count = (__u8)((__u64)bytes / sizeof(__u64));
  if (sample->kernel_count >= kernel_depth_limit) sample->flags |= FLAMED_KERNEL_DEPTH_LIMIT;
}

static __always_inline void submit(struct bpf_perf_event_data* ctx, struct record* record,
                                   struct flamed_counters* counter) {
  __u64 frames = (__u64)record->sample.user_count + record->sample.kernel_count;
  if (frames > FLAMED_MAX_FRAMES) frames = FLAMED_MAX_FRAMES; /* for the verifier */
  __u64 bytes = sizeof(struct flamed_sample) + frames * sizeof(__u64);

  long err = bpf_perf_event_output(ctx, &rings, BPF_F_CURRENT_CPU, record, bytes);
  if (!err)
    counter->submitted++;
  else if (err == -ENOSPC)
    counter->lost_ring_full++;
  else if (err == -ENOENT || err == -E2BIG || err == -EOPNOTSUPP)
    counter->lost_no_ring++;
  else
    counter->lost_output_error++;
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  __u32 cpu = bpf_get_smp_processor_id();
  struct flamed_counters* counter = bpf_map_lookup_elem(&counters, &cpu);
  struct record* record = bpf_map_lookup_elem(&scratch, &zero);
  if (!counter || !record) return 0;
  counter->taken++;

  struct flamed_sample* sample = &record->sample;
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  __u64 pid_tgid = bpf_get_current_pid_tgid();

  sample->tgid = pid_tgid >> 32;
  sample->tid = (__u32)pid_tgid;
  sample->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
  sample->cgroup_id = bpf_get_current_cgroup_id();
  sample->weight_ns = ctx->sample_period;
  sample->kind = FLAMED_ON_CPU;
  sample->flags = 0;
  bpf_get_current_comm(sample->comm, sizeof(sample->comm));

  collect_user_stack(ctx, task, record);
  collect_kernel_stack(ctx, record);
  submit(ctx, record, counter);
  return 0;
}
