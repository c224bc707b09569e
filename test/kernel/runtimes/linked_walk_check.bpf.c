/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the linked frames of one process by bpf/walk/linked_frames.h at each tick of a timer. For linked_walk_test.cc.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

#include "bpf/kernel/thread_pointer.h"
#include "bpf/walk/linked_frames.h"
#include "linked_walk_check.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 target = 0; /* its pid */
const volatile __u64 base = 0;   /* of the module that the layout is of */

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_linked_layout);
} layouts SEC(".maps");

/* The last walk of each CPU. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct linked_walk);
} walks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct linked_walk_counts);
} counts SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct known_codes);
} known SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct met_codes);
} met SEC(".maps");

SEC("perf_event")
int check_linked_walk(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  if (bpf_get_current_pid_tgid() >> 32 != target) return 0;
  struct flamed_linked_layout* layout = bpf_map_lookup_elem(&layouts, &zero);
  struct linked_walk* walk = bpf_map_lookup_elem(&walks, &zero);
  struct linked_walk_counts* count = bpf_map_lookup_elem(&counts, &zero);
  struct known_codes* known_ones = bpf_map_lookup_elem(&known, &zero);
  struct met_codes* met_ones = bpf_map_lookup_elem(&met, &zero);
  if (!layout || !walk || !count || !known_ones || !met_ones) return 0;

  const __u64 began = bpf_ktime_get_ns();
  linked_begin(walk, layout, base, thread_pointer());
  walk->tgid = target;
  walk->now_seconds = (__u32)(began / 1000000000ULL);
  linked_trust(walk, met_ones);
  for (__u64 i = 0; i < FLAMED_LINKED_RUN; i++) {
    if (!linked_step(walk, layout, known_ones, met_ones, 1)) break;
  }
  if (!walk->frame_count) {
    count->without_frames++;
    return 0;
  }
  const __u64 ns = bpf_ktime_get_ns() - began;
  count->walks++;
  count->frames += walk->frame_count;
  count->ns += ns;
  if (!count->least_ns || ns < count->least_ns) count->least_ns = ns;
  return 0;
}
