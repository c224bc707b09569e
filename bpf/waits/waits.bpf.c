/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Visits all threads, or those of a list, one after the other, and writes a record (visits.h) of each that is found in
 * another wait than last time. Runs when the daemon reads from the iterator; takes no lock and never waits. All reads
 * of kernel memory are by type, so lockdown allows them.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/errno.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_types.h"
#include "bpf/sample_ring.h"
#include "bpf/visits.h"
#include "wait_record.h"
#include "waiting_task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* kernel.perf_event_max_stack: bpf_get_task_stack() silently stops there. Set before loading. */
const volatile __u32 kernel_depth_limit = FLAMED_MAX_KERNEL_FRAMES;

/* Whether owners have shares. Set before loading. */
const volatile __u32 with_shares = 1;

/* Set by the daemon before each read from the iterator. */
struct flamed_visit_turn turn = {};

/* When a thread last got a CPU, of the threads visited so far: the present, by the clock of sched_info.last_arrival. */
static __u64 newest_arrival_ns = 0;

/* Read by the daemon between two reads from the iterator. */
struct flamed_visit_counts counts = {};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_sample_ring);
} visits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, FLAMED_WAIT_SETS);
  __type(key, __u32);
  __type(value, struct known_waits);
} known_waits SEC(".maps");

/* One iterator reads at a time, so one is enough. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_visit);
} workspaces SEC(".maps");

/* By owner. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, FLAMED_MOST_OWNERS);
  __type(key, __u32);
  __type(value, struct flamed_owner_share);
} shares SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, FLAMED_MOST_LISTED);
  __type(key, __u32);
  __type(value, struct flamed_listed_thread);
} listed SEC(".maps");

/* Each visit wakes some of the daemon's threads and helpers, so every round would find most of them in a new wait. */
static __always_inline int is_of_daemon(struct task_struct* task) {
  if (!turn.without_daemon) return 0;
  const __u32 daemon = (__u32)(bpf_get_current_pid_tgid() >> 32); /* it reads from the iterator */
  return (__u32)task->tgid == daemon || (__u32)task->real_parent->tgid == daemon;
}

/* By the clock that the threads visited so far tell: there is no helper for it. */
static __always_inline __u32 has_waited_for_long(struct task_struct* task) {
  if (!bpf_core_field_exists(task->sched_info.last_arrival)) return 0;
  const __u64 arrival_ns = task->sched_info.last_arrival;
  if (arrival_ns > newest_arrival_ns) newest_arrival_ns = arrival_ns;
  return newest_arrival_ns - arrival_ns > FLAMED_OLD_WAIT_NS;
}

/* Returns -1 if the ring has no room. */
static __always_inline int record(struct task_struct* task, struct flamed_visit* visit) {
  struct flamed_sample* sample = &visit->sample;
  __u32 zero = 0;
  struct flamed_sample_ring* ring = bpf_map_lookup_elem(&visits, &zero);
  if (!ring) return -1;

  const long bytes = bpf_get_task_stack(task, visit->addresses, sizeof(visit->addresses), 0);
  __u32 frames = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
  if (frames > FLAMED_MAX_KERNEL_FRAMES) frames = FLAMED_MAX_KERNEL_FRAMES;
  describe_thread(task, sample);
  describe_wait(task, &visit->wait);
  sample->kernel_count = (__u8)frames;
  if (frames >= kernel_depth_limit) sample->flags |= FLAMED_KERNEL_DEPTH_LIMIT;
  /* Has it left the wait meanwhile? Then the parts do not belong together. */
  if (is_on_cpu(task) || count_switches(task) != visit->wait.switches) {
    counts.moved++;
    return 0;
  }
  const __u32 words = (__u32)(__builtin_offsetof(struct flamed_visit, addresses) / 8) + frames;
  visit->type = FLAMED_RECORD_VISIT;
  visit->misc = 0;
  visit->size = (__u16)(words * 8);
  if (ring_put(ring, visit, words, FLAMED_MAX_VISIT_WORDS, 0) < 0) return -1;
  counts.recorded++;
  return 1;
}

static __always_inline __u32 owner_of_task(struct task_struct* task) {
  struct thread_ids ids;
  read_ids_by_type(task, &ids);
  return owner_of(&ids, task->real_cred->uid.val, task->real_cred->gid.val);
}

/* Null: there is no memory for it. */
static __always_inline struct flamed_owner_share* share_of(__u32 owner) {
  struct flamed_owner_share* share = bpf_map_lookup_elem(&shares, &owner);
  if (!share) {
    const struct flamed_owner_share first = {};
    bpf_map_update_elem(&shares, &owner, &first, BPF_NOEXIST);
    share = bpf_map_lookup_elem(&shares, &owner);
  }
  if (share) begin_share(share, &turn);
  return share;
}

static __always_inline void count_for_owner(struct task_struct* task) {
  const __u32 owner = owner_of_task(task);
  struct flamed_owner_share* share = share_of(owner);
  if (share && ++share->threads == FLAMED_MANY_THREADS && !share->is_large) note_large(&turn, owner);
}

/* May the thread leave a record? */
static __always_inline int has_share(struct task_struct* task) {
  const __u32 owner = owner_of_task(task);
  struct flamed_owner_share* share = share_of(owner);
  return !share || has_turn(share, &turn, owner, task->pid);
}

/* The share is looked up again: kept from before, the path in between would be verified with and without one. */
static __always_inline void spend(struct task_struct* task, __u8 stack) {
  const __u32 owner = owner_of_task(task);
  struct flamed_owner_share* share = bpf_map_lookup_elem(&shares, &owner);
  if (share) spend_visit(share, task->pid, stack);
}

static __always_inline int is_ending(struct task_struct* task) { return task->flags & PF_EXITING || task->exit_state; }

/* Returns 1 to end the read: the thread is visited by the next one. */
static __always_inline int visit(struct task_struct* task, __u64 now_ns, int by_shares) {
  if (is_on_cpu(task)) {
    counts.running++;
    return 0;
  }
  const __u64 state = task_state(task);
  const __u32 is_queued = is_in_run_queue(task);
  const __u64 switches = count_switches(task);
  const __u64 start_ns = task->start_boottime;
  const __u64 key = wait_key(task->pid, start_ns, switches, is_queued, wait_epoch(task->pid, now_ns));
  const __u32 set_number = wait_set(task->pid);
  struct known_waits* set = bpf_map_lookup_elem(&known_waits, &set_number);
  __u32 zero = 0;
  struct flamed_visit* visit = bpf_map_lookup_elem(&workspaces, &zero);
  if (!set || !visit) return 0;
  struct known_wait* known = find_wait(set, key);
  const __u32 is_old = knows_registers() && !is_same_thread(known, key) && !is_queued && has_waited_for_long(task);
  const __u8 stack = stack_due(known, key, is_old, turn.old_stacks);
  if (!stack) {
    known->seen_ns = now_ns;
    counts.unchanged++;
    if (known->key & FLAMED_STACK_IS_LATER) counts.later++;
    return 0;
  }
  if (by_shares && !has_share(task)) {
    if (is_same_wait(known, key)) known->seen_ns = now_ns;
    counts.passed_over++;
    return 0;
  }
  visit->time_ns = now_ns;
  visit->wait.stack = stack;
  visit->wait.thread_start_ns = start_ns;
  visit->wait.switches = switches;
  visit->wait.state = wait_state(state, is_queued);
  visit->wait.last_seen_ns = is_same_thread(known, key) ? known->seen_ns : 0;
  const int written = record(task, visit);
  if (written < 0) {
    counts.visited--;
    counts.no_room++;
    return 1;
  }
  counts.spent_ns += visit_cost_ns(stack);
  if (by_shares) spend(task, stack);
  if (written) {
    known->key = key;
    known->seen_ns = now_ns;
    if (stack == FLAMED_STACK_DUE) turn.old_stacks--;
    if (stack == FLAMED_STACK_WANTED) turn.new_stacks--;
    if (stack == FLAMED_STACK_LATER) {
      known->key |= FLAMED_STACK_IS_LATER;
      counts.later++;
    }
  }
  return 0;
}

/* Returns 1 to end the read: the next one begins with the same thread (bpf_iter_run_prog() in kernel/bpf/bpf_iter.c).
 */
SEC("iter/task")
int visit_thread(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task) return 0; /* after the last one */

  const __u64 now_ns = bpf_ktime_get_ns();
  if (is_over(&turn, now_ns)) return 1;
  counts.visited++;
  if (task->flags & PF_KTHREAD || is_ending(task) || task_state(task) & TASK_NEW || is_of_daemon(task)) {
    counts.left_out++;
    has_waited_for_long(task); /* for the time: some of the kernel's threads have just run */
    return 0;
  }
  if (with_shares && turn.counts_owners) count_for_owner(task);
  return visit(task, now_ns, with_shares);
}

/* Has the thread left the list? */
static __always_inline int is_off_the_list(struct task_struct* task) {
  const __u32 owner = owner_of_task(task);
  const struct flamed_owner_share* share = bpf_map_lookup_elem(&shares, &owner);
  return is_ending(task) || (share && share->is_large);
}

/* Since 6.2. Where they are missing, visit_listed() is not loaded. */
extern struct task_struct* bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct* task) __ksym __weak;

/* Visits the threads of the list, one for each of its elements. Returns 1 as visit_thread() does, and at its end. */
SEC("iter/bpf_map_elem")
int visit_listed(struct bpf_iter__bpf_map_elem* ctx) {
  const __u32* index = ctx->key;
  struct flamed_listed_thread* thread = ctx->value;
  if (!index || !thread) return 0;
  if (*index >= turn.listed) return 1;
  const __u64 now_ns = bpf_ktime_get_ns();
  if (is_over(&turn, now_ns)) return 1;
  int is_to_end = 0;
  struct task_struct* task = bpf_task_from_pid((__s32)thread->tid);
  if (task) {
    if (is_off_the_list(task)) {
      thread->tid = 0;
    } else if (!(task->flags & PF_KTHREAD || task_state(task) & TASK_NEW || is_of_daemon(task))) {
      counts.visited++;
      is_to_end = visit(task, now_ns, 0);
    }
    bpf_task_release(task);
  } else {
    thread->tid = 0;
  }
  if (!is_to_end) turn.listed_done = *index + 1;
  return is_to_end;
}
