/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a record (visits.h) says of a thread that waits, read by type, without its stack. */
#ifndef FLAMED_BPF_WAIT_RECORD_H
#define FLAMED_BPF_WAIT_RECORD_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/dumpable.h"
#include "bpf/kernel/kernel_types.h"
#include "bpf/kernel/pointer_kinds.h"
#include "bpf/kernel/thread_owner.h"
#include "bpf/kernel/user_registers.h"
#include "bpf/visits.h"
#include "waiting_task.h"

static __always_inline void describe_thread(struct task_struct* task, struct flamed_sample* sample) {
  struct thread_ids ids;

  sample->tgid = task->tgid;
  sample->tid = task->pid;
  sample->start_boottime_ns = task->group_leader->start_boottime;
  sample->exec_id = task->self_exec_id;
  sample->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
  sample->weight_ns = 0;
  read_ids_by_type(task, &ids);
  sample->owner = owner_of(&ids, task->real_cred->uid.val, task->real_cred->gid.val);
  sample->slice_place = 0;
  sample->slice_blocks = 0;
  sample->kind = FLAMED_WAITING;
  sample->user_end = FLAMED_END_NO_REGISTERS;
  sample->flags = is_dumpable_by_type(task) ? 0 : FLAMED_NOT_DUMPABLE;
  sample->user_count = 0;
  sample->tables = 0;
#pragma unroll
  for (int i = 0; i < FLAMED_COMM_BYTES; i++) sample->comm[i] = task->comm[i];
}

static __always_inline int knows_registers(void) {
  return bpf_core_enum_value_exists(enum bpf_func_id___with_task_pt_regs, BPF_FUNC_task_pt_regs___with_task_pt_regs);
}

static __always_inline void describe_wait(struct task_struct* task, struct flamed_wait* wait) {
  wait->run_ns = task->se.sum_exec_runtime;
  wait->queued_ns = 0;
  wait->disk_ns = 0;
  wait->known = 0;
  wait->holder = 0;
  if (bpf_core_field_exists(task->sched_info.run_delay)) {
    wait->queued_ns = task->sched_info.run_delay;
    wait->known |= FLAMED_KNOWS_QUEUED;
  }
  if (bpf_core_field_exists(task->delays) && task->delays) {
    wait->disk_ns = task->delays->blkio_delay;
    wait->known |= FLAMED_KNOWS_DISK;
    if (waits_for_block_device(task)) wait->known |= FLAMED_IS_COUNTED_AS_DISK;
  }
  wait->system_call = FLAMED_NO_SYSTEM_CALL;
  if (knows_registers()) {
    const flamed_registers* registers = (const flamed_registers*)bpf_task_pt_regs(task);
    read_system_call((const struct pt_regs___kernel*)registers, wait);
    wait->known |= FLAMED_KNOWS_SYSTEM_CALL;
    if (bpf_core_field_exists(task->sched_info.pcount) && !is_32bit(registers)) {
      wait->runs = task->sched_info.pcount;
      registers_by_number(registers, wait->registers);
      end_of_reads();
      wait->known |= FLAMED_KNOWS_REGISTERS;
    }
  }
}

#endif /* FLAMED_BPF_WAIT_RECORD_H */
