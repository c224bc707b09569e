/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program for a timer's event that does nothing: the lower bound for every sampler. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int nothing(struct bpf_perf_event_data* ctx) {
  (void)ctx;
  return 0;
}
