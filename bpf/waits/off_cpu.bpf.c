/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The exact mode of waiting: runs at every switch of every CPU, and so is attached only while somebody has asked for
 * it. A switch between threads that are not selected costs two loads and two look-ups in an array of bytes. See
 * off_cpu.h.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel_types.h"
#include "bpf/off_cpu.h"
#include "wait_record.h"
#include "waiting_task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* kernel.perf_event_max_stack: bpf_get_stack() silently stops there. Set before loading. */
const volatile __u32 kernel_depth_limit = FLAMED_MAX_KERNEL_FRAMES;

/* When the program was attached, on both clocks. Set by the daemon just before. */
volatile __u64 began_ns = 0;
volatile __u64 began_boottime_ns = 0;

/* A stack for each so long. The daemon raises it. */
volatile __u64 period_ns = FLAMED_FIRST_PERIOD_NS;

/* By the lower bits of a process's id: may it be selected? A switch rarely has to look further. */
#define MARKS 16384
__u8 marks[MARKS] = {};

/* By tgid. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FLAMED_MOST_SELECTED);
  __type(key, __u32);
  __type(value, __u32);
} selected SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FLAMED_MOST_OFF_CPU);
  __type(key, __u32);
  __type(value, struct flamed_off_cpu_thread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_off_cpu_counts);
} counts SEC(".maps");

/* A thread as it is first seen: too large for the stack of a program. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_off_cpu_thread);
} new_threads SEC(".maps");

/* Of struct flamed_off_cpu_stack, struct flamed_wait_end and struct flamed_waker. Some 400 stacks. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 * 1024 * 1024);
} records SEC(".maps");

static __always_inline int is_marked(__u32 tgid) { return marks[tgid & (MARKS - 1)]; }

static __always_inline __u64 queued_ns_of(struct task_struct* task) {
  if (!bpf_core_field_exists(task->sched_info.run_delay)) return 0;
  return task->sched_info.run_delay;
}

static __always_inline __s32 call_of(struct task_struct* task) {
  struct flamed_wait wait;
  if (!knows_registers()) return FLAMED_NO_SYSTEM_CALL;
  read_system_call((const struct pt_regs___kernel*)bpf_task_pt_regs(task), &wait);
  return (__s32)wait.system_call;
}

/* Null if it is of no selected process, or if there is no room for it. */
static __always_inline struct flamed_off_cpu_thread* find_thread(struct task_struct* task,
                                                                 struct flamed_off_cpu_counts* count) {
  __u32 tid = task->pid;
  __u32 tgid = task->tgid;
  __u32 zero = 0;
  struct flamed_off_cpu_thread* thread = bpf_map_lookup_elem(&threads, &tid);
  if (thread && thread->start_ns == task->start_boottime) return thread;
  if (!bpf_map_lookup_elem(&selected, &tgid)) return 0;
  struct flamed_off_cpu_thread* fresh = bpf_map_lookup_elem(&new_threads, &zero);
  if (!fresh) return 0;
  fresh->start_ns = task->start_boottime;
  fresh->tgid = tgid;
  if (bpf_map_update_elem(&threads, &tid, fresh, BPF_ANY)) {
    count->lost_threads++;
    return 0;
  }
  return bpf_map_lookup_elem(&threads, &tid);
}

/* Counts the thread's last wait, now that the kernel has counted its time in run queues. */
static __always_inline void end_wait(struct task_struct* task, struct flamed_off_cpu_thread* thread,
                                     struct flamed_off_cpu_counts* count) {
  const __u64 away_ns = thread->away_ns;
  const __u32 index = thread->place;
  if (!away_ns || index >= FLAMED_OFF_CPU_PLACES) return;
  struct flamed_off_cpu_place* place = &thread->places[index];
  __u64 queued_ns = queued_ns_of(task) - thread->queued_ns;
  if (queued_ns > away_ns || place->call == FLAMED_PREEMPTED) queued_ns = away_ns;
  thread->away_ns = 0;
  add_wait(place, away_ns - queued_ns, queued_ns);
  if (!thread->chance) return;
  struct flamed_wait_end* end = bpf_ringbuf_reserve(&records, sizeof(*end), 0);
  if (!end) {
    count->no_room++;
    return;
  }
  end->type = FLAMED_RECORD_WAIT_END;
  end->tid = task->pid;
  end->number = thread->number;
  end->blocked_ns = away_ns - queued_ns;
  end->queued_ns = queued_ns;
  end->call = place->call;
  end->chance = thread->chance;
  bpf_ringbuf_submit(end, BPF_RB_NO_WAKEUP);
}

/* `task` is the running thread, so its memory can be read. Returns 0 if there is no room. */
static __always_inline int take_stack(void* ctx, struct task_struct* task, __u64 now_ns, __u32 is_preempted) {
  struct flamed_off_cpu_stack* record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
  if (!record) return 0;
  struct flamed_visit* visit = &record->visit;
  const long bytes = bpf_get_stack(ctx, visit->addresses, sizeof(visit->addresses), 0);
  __u32 frames = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
  if (frames > FLAMED_MAX_KERNEL_FRAMES) frames = FLAMED_MAX_KERNEL_FRAMES;
  visit->wait.stack = FLAMED_STACK_ABSENT;
  visit->wait.switches = count_switches(task);
  visit->wait.thread_start_ns = task->start_boottime;
  visit->wait.last_seen_ns = 0;
  visit->wait.state = wait_state(task_state(task), is_preempted);
  describe_thread(task, &visit->sample);
  describe_wait(task, &visit->wait);
  visit->sample.kind = FLAMED_OFF_CPU;
  visit->sample.kernel_count = (__u8)frames;
  visit->sample.linked_frames = 0;
  visit->sample.linked_calls = 0;
  visit->sample.linked_layout = 0;
  visit->sample.linked_cut = 0;
  if (frames >= kernel_depth_limit) visit->sample.flags |= FLAMED_KERNEL_DEPTH_LIMIT;
  visit->type = FLAMED_RECORD_VISIT;
  visit->misc = 0;
  visit->size = (__u16)(__builtin_offsetof(struct flamed_visit, addresses) + frames * 8);
  visit->time_ns = now_ns;

  record->stack_bytes = 0;
  if (visit->wait.known & FLAMED_KNOWS_REGISTERS) {
    const __u64 start = visit->wait.registers[FLAMED_SP_REGISTER] & ~(__u64)(FLAMED_SLICE_BLOCK_BYTES - 1);
    for (__u64 i = 0; i < 8; i++) {
      const __u64 done = i * FLAMED_SLICE_BLOCK_BYTES;
      if (bpf_probe_read_user(&record->stack[done], FLAMED_SLICE_BLOCK_BYTES, (void*)(start + done))) break;
      record->stack_bytes = done + FLAMED_SLICE_BLOCK_BYTES;
    }
    if (record->stack_bytes) visit->wait.stack = FLAMED_STACK_READ;
  }
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 1;
}

/* The thread leaves its CPU. */
static __always_inline void leave(void* ctx, struct task_struct* task, __u32 is_preempted, __u64 now_ns,
                                  struct flamed_off_cpu_counts* count) {
  struct flamed_off_cpu_thread* thread = find_thread(task, count);
  if (!thread) return;
  end_wait(task, thread, count);
  thread->chance = 0;
  if (task->flags & PF_EXITING && !is_preempted) return; /* most likely for good */
  const __u32 index = find_place(thread, is_preempted ? FLAMED_PREEMPTED : call_of(task));
  if (index >= FLAMED_OFF_CPU_PLACES) return; /* for the verifier */
  const __u32 chance = chance_of(&thread->places[index], period_ns);
  count->waits++;
  thread->place = index;
  thread->number = count_switches(task);
  thread->queued_ns = queued_ns_of(task);
  thread->out_ns = now_ns;
  if (chance < FLAMED_SURE && (bpf_get_prandom_u32() & (FLAMED_SURE - 1)) >= chance) return;
  if (take_stack(ctx, task, now_ns, is_preempted)) {
    thread->chance = chance;
    count->stacks++;
  } else {
    count->no_room++;
  }
}

/* The thread gets a CPU. */
static __always_inline void come_back(struct task_struct* task, __u64 now_ns, struct flamed_off_cpu_counts* count) {
  struct flamed_off_cpu_thread* thread = find_thread(task, count);
  if (!thread) return;
  if (thread->out_ns) {
    thread->away_ns = now_ns - thread->out_ns;
    thread->out_ns = 0;
    return;
  }
  /* Seen for the first time: a new thread, or one that was away when the program was attached. */
  if (thread->number || thread->start_ns >= began_boottime_ns) return;
  __s32 call = call_of(task);
  if (knows_registers() && call == FLAMED_NO_SYSTEM_CALL) call = FLAMED_PREEMPTED;
  const __u32 index = find_place(thread, call);
  if (index >= FLAMED_OFF_CPU_PLACES) return; /* for the verifier */
  thread->place = index;
  thread->number = count_switches(task);
  thread->queued_ns = queued_ns_of(task);
  thread->away_ns = now_ns - began_ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(threads_switched, bool preempt, struct task_struct* prev, struct task_struct* next) {
  const int leaves = is_marked(prev->tgid);
  const int comes_back = is_marked(next->tgid);
  if (!leaves && !comes_back) return 0;
  __u32 zero = 0;
  struct flamed_off_cpu_counts* count = bpf_map_lookup_elem(&counts, &zero);
  if (!count) return 0;
  const __u64 now_ns = bpf_ktime_get_ns();
  if (leaves) leave(ctx, prev, preempt || task_state(prev) == 0, now_ns, count);
  if (comes_back) come_back(next, now_ns, count);
  count->run_ns += bpf_ktime_get_ns() - now_ns;
  return 0;
}

/* bpf_get_current_task_btf(), since 5.11. */
static __always_inline int knows_typed_task(void) {
  return bpf_core_enum_value_exists(enum bpf_func_id___with_current_task_btf,
                                    BPF_FUNC_get_current_task_btf___with_current_task_btf);
}

/*
 * A thread is woken, by the current one or in an interrupt. Attached only where somebody has asked for wakers. Waits
 * whose stacks are not taken have none; nor has a thread that is woken before it has quite left its CPU.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(thread_woken, struct task_struct* task) {
  if (!is_marked(task->tgid)) return 0;
  __u32 tid = task->pid;
  __u32 zero = 0;
  struct flamed_off_cpu_thread* thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread || thread->start_ns != task->start_boottime || !thread->out_ns || !thread->chance) return 0;
  struct flamed_off_cpu_counts* count = bpf_map_lookup_elem(&counts, &zero);
  if (!count) return 0;
  const __u64 now_ns = bpf_ktime_get_ns();
  struct flamed_waker* waker = bpf_ringbuf_reserve(&records, sizeof(*waker), 0);
  if (!waker) {
    count->no_room++;
    return 0;
  }
  const __u64 current = bpf_get_current_pid_tgid();
  struct thread_ids ids;
  if (knows_typed_task()) {
    read_ids_by_type(bpf_get_current_task_btf(), &ids);
  } else {
    read_ids((struct task_struct*)bpf_get_current_task(), &ids);
  }
  waker->type = FLAMED_RECORD_WAKER;
  waker->tid = tid;
  waker->number = thread->number;
  waker->waker = (__u32)current;
  waker->tgid = current >> 32;
  waker->owner = owner_of_current(&ids);
  bpf_get_current_comm(waker->comm, sizeof(waker->comm));
  const long bytes = bpf_get_stack(ctx, waker->addresses, sizeof(waker->addresses), 0);
  waker->frames = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
  bpf_ringbuf_submit(waker, BPF_RB_NO_WAKEUP);
  count->run_ns += bpf_ktime_get_ns() - now_ns;
  return 0;
}
