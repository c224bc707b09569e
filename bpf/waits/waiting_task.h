/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel's structures say of a thread that waits. Fields have changed their names since 5.10. */
#ifndef FLAMED_BPF_WAITING_TASK_H
#define FLAMED_BPF_WAITING_TASK_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_types.h"
#include "bpf/kernel/pointer_kinds.h"
#include "bpf/visits.h"

/* include/linux/sched.h */
#define PF_EXITING 0x4
#define PF_KTHREAD 0x200000
#define TASK_NEW 0x800

static __always_inline __u64 task_state(struct task_struct* task) {
  struct task_struct___until_5_13* old = (struct task_struct___until_5_13*)task;
  if (bpf_core_field_exists(task->__state)) return task->__state;
  return (__u64)old->state;
}

/* A kernel for one CPU alone has no such field, and no other CPU on which the thread could be. */
static __always_inline __u32 is_on_cpu(struct task_struct* task) {
  if (bpf_core_field_exists(task->on_cpu)) return task->on_cpu != 0;
  return task == bpf_get_current_task_btf();
}

/* Since 6.12 a thread that has gone to sleep may stay in the run queue for a while. */
static __always_inline __u32 is_in_run_queue(struct task_struct* task) {
  if (task->on_rq == 0) return 0;
  if (bpf_core_field_exists(task->se.sched_delayed)) return task->se.sched_delayed == 0;
  return 1;
}

/* Is it in a wait that delays->blkio_delay counts, if it sleeps? */
static __always_inline __u32 waits_for_block_device(struct task_struct* task) {
  if (!bpf_core_field_exists(task->in_iowait)) return 0;
  return BPF_CORE_READ_BITFIELD(task, in_iowait) != 0;
}

static __always_inline __u64 count_switches(struct task_struct* task) { return task->nvcsw + task->nivcsw; }

/* The registers of a waiting thread, as it entered the kernel. */
static __always_inline void read_system_call(const struct pt_regs___kernel* registers, struct flamed_wait* wait) {
#if defined(__TARGET_ARCH_arm64)
  wait->system_call = registers->syscallno;
  wait->arguments[0] = registers->orig_x0;
  wait->arguments[1] = registers->regs[1];
  wait->arguments[2] = registers->regs[2];
#else
  wait->system_call = (__s64)registers->orig_ax;
  wait->arguments[0] = registers->di;
  wait->arguments[1] = registers->si;
  wait->arguments[2] = registers->dx;
#endif
  end_of_reads();
}

#endif /* FLAMED_BPF_WAITING_TASK_H */
