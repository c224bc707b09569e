/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The least work of a profiler by frame pointers: the kernel's own walk of the user stack, with the result in a perf
 * buffer. The baseline for flamed's walks.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

#define MAX_FRAMES 127 /* as in bpf/events.h */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} rings SEC(".maps");

struct record {
  __u64 pid_tgid;
  __u64 addresses[MAX_FRAMES];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct record);
} records SEC(".maps");

SEC("perf_event")
int get_stack(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct record* record = bpf_map_lookup_elem(&records, &zero);
  if (!record) return 0;
  record->pid_tgid = bpf_get_current_pid_tgid();
  long bytes = bpf_get_stack(ctx, record->addresses, sizeof(record->addresses), BPF_F_USER_STACK);
  if (bytes < 0 || bytes > (long)sizeof(record->addresses)) return 0;
  bpf_perf_event_output(ctx, &rings, BPF_F_CURRENT_CPU, record, sizeof(record->pid_tgid) + (__u64)bytes);
  return 0;
}
