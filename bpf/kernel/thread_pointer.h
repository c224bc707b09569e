/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread pointer of the running thread: the base of its thread-local variables.
 */
#ifndef FLAMED_BPF_THREAD_POINTER_H
#define FLAMED_BPF_THREAD_POINTER_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel_types.h"

/* x86-64: as of arch_prctl() or clone(). After wrfsbase in user space it is the old one until the thread is preempted.
 */
static __always_inline __u64 thread_pointer(void) {
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
#if defined(__TARGET_ARCH_arm64)
  return BPF_CORE_READ(task, thread.uw.tp_value);
#else
  return BPF_CORE_READ(task, thread.fsbase);
#endif
}

#endif /* FLAMED_BPF_THREAD_POINTER_H */
