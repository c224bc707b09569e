/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose a thread is. With each sample, since a thread may change its user at any time, and may be gone before anybody
 * could look it up.
 */
#ifndef FLAMED_BPF_THREAD_OWNER_H
#define FLAMED_BPF_THREAD_OWNER_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "events.h"
#include "kernel_types.h"

/*
 * The user who may look into the running thread, or FLAMED_NO_OWNER: what __ptrace_may_access() in kernel/ptrace.c asks
 * for. Real, effective and saved user must be one, and so must the groups: a setuid or setgid program has the caller's
 * real ids, but works with what the caller may not see.
 */
static __always_inline __u32 owner_of_current(struct task_struct* task) {
  const struct cred* cred = BPF_CORE_READ(task, real_cred);
  __u64 real = bpf_get_current_uid_gid();
  __u32 uid = (__u32)real;
  __u32 gid = real >> 32;
  if (BPF_CORE_READ(cred, euid.val) != uid || BPF_CORE_READ(cred, suid.val) != uid) return FLAMED_NO_OWNER;
  if (BPF_CORE_READ(cred, egid.val) != gid || BPF_CORE_READ(cred, sgid.val) != gid) return FLAMED_NO_OWNER;
  return uid;
}

/* The same by loads that the verifier checks against BTF (5.11). */
static __always_inline __u32 owner_of_current_by_type(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  const struct cred* cred = task->real_cred;
  __u64 real = bpf_get_current_uid_gid();
  __u32 uid = (__u32)real;
  __u32 gid = real >> 32;
  if (cred->euid.val != uid || cred->suid.val != uid) return FLAMED_NO_OWNER;
  if (cred->egid.val != gid || cred->sgid.val != gid) return FLAMED_NO_OWNER;
  return uid;
}

#endif /* FLAMED_BPF_THREAD_OWNER_H */
