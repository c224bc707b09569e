/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a process dumpable, so that its own user may inspect it? Not if it has changed to that user without an exec, has
 * asked for it (PR_SET_DUMPABLE), or runs a file that the user may not read: see ptrace(2) and __ptrace_may_access() in
 * kernel/ptrace.c. Checked at each sample, as it may change at any time.
 */
#ifndef FLAMED_BPF_DUMPABLE_H
#define FLAMED_BPF_DUMPABLE_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel_types.h"
#include "pointer_kinds.h"

/* The lowest two bits of mm->flags (include/linux/sched/coredump.h): 1 is SUID_DUMP_USER, yes. */
#define DUMPABLE_MASK 3
#define DUMPABLE_BY_USER 1

/* A kernel without any of the fields counts as dumpable. */
static __always_inline int is_dumpable(struct task_struct* task, struct mm_struct* mm) {
  __u64 flags = DUMPABLE_BY_USER;
  if (bpf_core_field_exists(((struct task_struct*)0)->exec_state)) {
    flags = BPF_CORE_READ(task, exec_state, dumpable);
  } else if (bpf_core_field_exists(((struct mm_struct___bits*)0)->flags.__mm_flags)) {
    flags = BPF_CORE_READ((struct mm_struct___bits*)mm, flags.__mm_flags[0]);
  } else if (bpf_core_field_exists(((struct mm_struct___word*)0)->flags)) {
    flags = BPF_CORE_READ((struct mm_struct___word*)mm, flags);
  }
  return (flags & DUMPABLE_MASK) == DUMPABLE_BY_USER;
}

/* The same by loads that the verifier checks against BTF. */
static __always_inline int is_dumpable_by_type(struct task_struct* task) {
  struct mm_struct* mm = task->mm;
  __u64 flags = DUMPABLE_BY_USER;
  if (bpf_core_field_exists(((struct task_struct*)0)->exec_state)) {
    flags = task->exec_state->dumpable;
  } else if (bpf_core_field_exists(((struct mm_struct___bits*)0)->flags.__mm_flags)) {
    flags = ((struct mm_struct___bits*)mm)->flags.__mm_flags[0];
  } else if (bpf_core_field_exists(((struct mm_struct___word*)0)->flags)) {
    flags = ((struct mm_struct___word*)mm)->flags;
  }
  end_of_reads();
  return (flags & DUMPABLE_MASK) == DUMPABLE_BY_USER;
}

#endif /* FLAMED_BPF_DUMPABLE_H */
