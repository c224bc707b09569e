/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts the system calls of one control group. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 cgroup_id = 0;
__u64 system_calls = 0;

SEC("raw_tp/sys_enter")
int count_system_call(void* ctx) {
  (void)ctx;
  if (bpf_get_current_cgroup_id() == cgroup_id) __sync_fetch_and_add(&system_calls, 1);
  return 0;
}
