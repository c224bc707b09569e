/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that every kernel's verifier refuses, for verifier_test.cc: each writes past the end of a map's value.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} small SEC(".maps");

static __always_inline int write_behind(void) {
  __u32 zero = 0;
  volatile __u64* value = bpf_map_lookup_elem(&small, &zero);
  if (!value) return 0;
  value[1] = 1;
  return 0;
}

SEC("perf_event")
int wrong_at_once(struct bpf_perf_event_data* ctx) { return write_behind(); }

/* Each takes some 350 bytes of the verifier's log, on 5.10 thousands: more than libbpf's first buffer of 16 MiB.
 */
#define TURNS 60000

SEC("perf_event")
int wrong_after_a_long_way(struct bpf_perf_event_data* ctx) {
  volatile __u32 turns = 0;
  for (__u32 i = 0; i < TURNS; i++) turns = turns + 1;
  return write_behind();
}
