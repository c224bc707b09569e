/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few fields of kernel structures that the programs read. libbpf adjusts each access to the field's offset in the
 * running kernel's BTF (CO-RE), so this file need not match any kernel's layout, and no vmlinux.h is needed.
 */
#ifndef FLAMED_BPF_KERNEL_TYPES_H
#define FLAMED_BPF_KERNEL_TYPES_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;

struct kernel_id {
  __u32 val;
};

struct cred {
  struct kernel_id uid, gid, suid, sgid, euid, egid; /* kuid_t, kgid_t: ids in the initial user namespace */
};

enum task_dumpable { FLAMED_DUMPABLE_BY_OWNER = 1 }; /* TASK_DUMPABLE_OWNER */

struct task_exec_state {
  enum task_dumpable dumpable;
};

#if defined(__TARGET_ARCH_arm64)
struct thread_struct {
  struct {
    unsigned long tp_value;
  } uw;
};
#else
struct thread_struct {
  unsigned long fsbase;
};
#endif

struct sched_entity {
  __u64 sum_exec_runtime;
  unsigned char sched_delayed; /* 6.12 */
};

struct sched_info {
  unsigned long pcount;            /* with CONFIG_SCHED_INFO */
  unsigned long long run_delay;    /* with CONFIG_SCHED_INFO */
  unsigned long long last_arrival; /* with CONFIG_SCHED_INFO */
};

struct task_delay_info {
  __u64 blkio_delay;
};

struct kernfs_node {
  __u64 id;
};

struct cgroup {
  struct kernfs_node* kn;
};

struct css_set {
  struct cgroup* dfl_cgrp;
};

struct task_struct {
  unsigned int __state; /* 5.14 */
  unsigned int flags;
  /* Unsigned: 7.3 has bytes here, and libbpf narrows only reads of unsigned fields. */
  unsigned int on_cpu; /* with CONFIG_SMP */
  unsigned int on_rq;
  int exit_state;
  int pid; /* of the thread, in the initial pid namespace */
  int tgid;
  struct task_struct* real_parent;
  unsigned in_iowait : 1; /* it waits in io_schedule() */
  unsigned long nvcsw, nivcsw;
  char comm[16];
  struct sched_entity se;
  struct sched_info sched_info;
  struct task_delay_info* delays; /* with CONFIG_TASK_DELAY_ACCT; null while it is switched off */
  struct css_set* cgroups;
  void* stack;
  struct mm_struct* mm;
  struct task_exec_state* exec_state; /* 7.2: has dumpable, instead of mm->flags */
  const struct cred* real_cred;
  struct task_struct* group_leader;
  __u64 self_exec_id;   /* 5.7: incremented at each exec */
  __u64 start_boottime; /* 5.5; the start time in /proc/PID/stat */
  struct thread_struct thread;
};

struct task_struct___until_5_13 {
  long state;
};

/* Where a thread has entered the kernel. */
#if defined(__TARGET_ARCH_arm64)
struct pt_regs___kernel {
  __u64 regs[31];
  __u64 orig_x0;
  __s32 syscallno;
};
#else
struct pt_regs___kernel {
  unsigned long di, si, dx, orig_ax;
};
#endif

struct bpf_iter__task {
  struct task_struct* task;
};

struct bpf_iter__bpf_map_elem {
  void *key, *value;
};

struct mm_struct___stack {
  unsigned long start_stack;
};

struct super_block {
  __u32 s_dev;
};

struct inode {
  unsigned long i_ino;
  struct super_block* i_sb;
};

struct file {
  struct inode* f_inode;
};

struct mm_struct___program {
  struct file* exe_file;
  unsigned long start_code;
};

struct mm_struct___word {
  unsigned long flags; /* until 6.17 */
};

struct mm_struct___bits {
  struct {
    unsigned long __mm_flags[1];
  } flags; /* mm_flags_t, since 6.18 */
};

#pragma clang attribute pop

/* For checking whether the running kernel has the helper (5.15). */
enum bpf_func_id___with_task_pt_regs {
  BPF_FUNC_task_pt_regs___with_task_pt_regs = 175,
};

/* Likewise (5.11). */
enum bpf_func_id___with_current_task_btf {
  BPF_FUNC_get_current_task_btf___with_current_task_btf = 158,
};

#endif /* FLAMED_BPF_KERNEL_TYPES_H */
