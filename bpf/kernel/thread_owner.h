/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The owner of a thread. Read at each sample, since a thread may change its user at any time, and may end before
 * anybody could look it up.
 */
#ifndef FLAMED_BPF_THREAD_OWNER_H
#define FLAMED_BPF_THREAD_OWNER_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/events.h"
#include "kernel_types.h"
#include "pointer_kinds.h"

struct thread_ids {
  __u32 euid, suid, egid, sgid;
};

static __always_inline void read_ids(struct task_struct* task, struct thread_ids* ids) {
  struct cred* cred = (struct cred*)BPF_CORE_READ(task, real_cred);
  ids->euid = BPF_CORE_READ(cred, euid.val);
  ids->suid = BPF_CORE_READ(cred, suid.val);
  ids->egid = BPF_CORE_READ(cred, egid.val);
  ids->sgid = BPF_CORE_READ(cred, sgid.val);
}

/* By loads that the verifier checks against BTF (5.11 for the running thread, which has bpf_get_current_task_btf()). */
static __always_inline void read_ids_by_type(struct task_struct* task, struct thread_ids* ids) {
  const struct cred* cred = task->real_cred;
  ids->euid = cred->euid.val;
  ids->suid = cred->suid.val;
  ids->egid = cred->egid.val;
  ids->sgid = cred->sgid.val;
  end_of_reads();
}

/*
 * The user who may inspect the thread with these ids, or FLAMED_NO_OWNER: the condition of __ptrace_may_access() in
 * kernel/ptrace.c. Real, effective and saved user must be the same, and so must the groups: a setuid or setgid program
 * has the caller's real ids, but has data that the caller may not see.
 */
static __always_inline __u32 owner_of(const struct thread_ids* ids, __u32 uid, __u32 gid) {
  if (ids->euid != uid || ids->suid != uid) return FLAMED_NO_OWNER;
  if (ids->egid != gid || ids->sgid != gid) return FLAMED_NO_OWNER;
  return uid;
}

static __always_inline __u32 owner_of_current(const struct thread_ids* ids) {
  const __u64 real = bpf_get_current_uid_gid();
  return owner_of(ids, (__u32)real, real >> 32);
}

#endif /* FLAMED_BPF_THREAD_OWNER_H */
