/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler: runs in the timer interrupt of PERF_COUNT_SW_CPU_CLOCK on each CPU, and puts one variable-length record
 * (events.h) into that CPU's ring of samples. It never waits, and counts samples that it could not deliver.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/events.h"
#include "bpf/kernel/dumpable.h"
#include "bpf/kernel/kernel_types.h"
#include "bpf/kernel/opaque.h"
#include "bpf/kernel/pointer_kinds.h"
#include "bpf/kernel/thread_owner.h"
#include "bpf/kernel/thread_pointer.h"
#include "bpf/kernel/user_registers.h"
#include "bpf/sample_ring.h"
#include "bpf/walk/frame_pointer_walk.h"
#include "bpf/walk/frame_slots.h"
#include "bpf/walk/kernel_walk.h"
#include "bpf/walk/linked_frames.h"
#include "bpf/walk/unwind_walk.h"
#include "slice_stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* kernel.perf_event_max_stack: bpf_get_stack() silently stops there. Set before loading. */
const volatile __u32 kernel_depth_limit = FLAMED_MAX_KERNEL_FRAMES;

/* Are there unwind tables? Otherwise user stacks are walked by frame pointers alone. Set before loading. */
const volatile __u32 use_unwind_tables = 0;

/* Do samples whose walk has to wait take a slice of their stack along? Set before loading. */
const volatile __u32 use_stack_slices = 0;

/* Are the frames of runtimes walked? Set before loading. */
const volatile __u32 use_runtimes = 0;

/*
 * The period of all timers. Written by the daemon while none of them runs: bpf_perf_event_data's sample_period of a
 * software clock keeps its first value when PERF_EVENT_IOC_PERIOD sets another (hw.last_period in
 * perf_swevent_hrtimer(), kernel/events/core.c).
 */
volatile __u64 period_ns = 0;

/* enum flamed_walk: the daemon loads walk_user_stack() while samples are already taken. */
volatile __u32 walk_state = FLAMED_WALK_PENDING;

/* Incremented by the daemon after each change of `processes`. */
volatile __u32 processes_edition = 0;

struct sample_ring_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct flamed_sample_ring));
};

/* One per CPU that is or was sampled: the index is the CPU's number. Size set before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(__u32));
  __array(values, struct sample_ring_map);
} sample_rings SEC(".maps");

/* One per CPU: index is the CPU's number. Size set before loading. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct flamed_counters);
} counters SEC(".maps");

/* The variables of one run of the sampler: too large for the 512 bytes of BPF stack. */
struct workspace {
  struct flamed_record record; /* first: it is copied as it is */
  struct walk walk;
  struct pointer_walk pointers;
  struct site_owners owners;
  __u64 stepped_by[FLAMED_MAX_USER_FRAMES]; /* by native frame but the last: walk.stepped_by */
  __u64 samples;                            /* samples to be walked by tables: the owners' clock */
  __u32 calls;                              /* tail calls of this sample's walks */
  __u64 noticed_ns;                         /* when the daemon was last notified */
};

/* A perf_event program does not interrupt itself (bpf_prog_active), so one per CPU is enough. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct workspace);
} workspaces SEC(".maps");

/* Wakes the daemon; samples do so only when a ring is half full. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} notices SEC(".maps");

/* Index: flamed_process.runtime. Written by the daemon before a process has the number. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, FLAMED_MAX_LINKED_LAYOUTS);
  __type(key, __u32);
  __type(value, struct flamed_linked_layout);
} linked_layouts SEC(".maps");

/* Index: flamed_process.runtime without FLAMED_SLOTS. Likewise. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, FLAMED_MAX_LINKED_LAYOUTS);
  __type(key, __u32);
  __type(value, struct flamed_slot_layout);
} slot_layouts SEC(".maps");

/* Programs that have a runtime themselves, not in a library, and those that need no tables at once. Written by the
 * daemon. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FLAMED_MAX_PROGRAM_FILES);
  __type(key, struct flamed_program_file);
  __type(value, struct flamed_known_program);
} known_programs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct linked_walk);
} linked_walks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct known_codes);
} known_codes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct met_codes);
} met_codes SEC(".maps");

/* Of struct flamed_code_copy. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 512 * 1024);
} code_copies SEC(".maps");

/* The program calls itself: a walk over all frames in one run is too much for older verifiers. */
#define WALK_PROGRAM 0
/* Ends a sample of kernel code, if the daemon knows the kernel's unwind tables. */
#define KERNEL_WALK_PROGRAM 1
#define SLICE_PROGRAM 2
#define LINKED_WALK_PROGRAM 3
/* Ends a sample with frames of a runtime. */
#define LINKED_END_PROGRAM 4
/* Ends any other sample. */
#define END_PROGRAM 5
#define POINTER_WALK_PROGRAM 6
#define SLOT_WALK_PROGRAM 7
#define CODE_COPY_PROGRAM 8
struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 9);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(__u32));
} programs SEC(".maps");

/*
 * Frames in one run. Of the 33 tail calls that the kernel allows, 29 walk 1,044 frames; two more end a sample, and two
 * walk a runtime's frames, before the native walk or after it. Copies of code objects take the place of 36 frames.
 */
#define LINKED_WALK_RUNS 2
#define SLOT_WALK_RUNS 2
/* No walk calls itself after so many tail calls: a slice and the sample's end need two. */
#define MOST_WALK_CALLS 31
#define FRAMES_PER_RUN 36
/* Each CPU notifies the daemon at most this often. */
#define NOTICE_PERIOD_NS 10000000ULL
#define NS_PER_TICK 10000000ULL

static __always_inline struct workspace* find_workspace(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&workspaces, &zero);
}

/* 1 if the last notice was some time ago. Without a branch, which would double the loops over frames for the verifier.
 */
static __always_inline __u32 may_notify_daemon(const struct workspace* work) {
  __u64 left = work->noticed_ns + NOTICE_PERIOD_NS - work->walk.began_ns - 1;
  FLAMED_OPAQUE(left);
  return (__u32)(left >> 63);
}

static __always_inline void notify_daemon(struct workspace* work, __u32 reason) {
  struct flamed_notice notice;
  __u64 now = bpf_ktime_get_ns();
  if (now - work->noticed_ns < NOTICE_PERIOD_NS) return;
  work->noticed_ns = now;
  notice.tgid = work->record.sample.tgid;
  notice.reason = reason;
  /* If the ring is full, the daemon has enough notices. */
  bpf_ringbuf_output(&notices, &notice, sizeof(notice), BPF_RB_FORCE_WAKEUP);
}

/* Looks up the process's tables. Returns 0 if there are none for this program of this process. */
static __always_inline int find_tables(struct flamed_sample* sample, struct walk* walk) {
  struct flamed_process* process = bpf_map_lookup_elem(&processes, &sample->tgid);
  if (!process || process->start_ticks != sample->start_boottime_ns / NS_PER_TICK ||
      (process->exec_id != sample->exec_id && process->exec_id != FLAMED_ANY_EXEC))
    return 0;
  sample->tables = (__u16)process->tables;
  barrier();
  walk->block = process->block;
  walk->first = process->first;
  walk->count = process->count;
  walk->runtime = process->runtime;
  walk->runtime_base = process->runtime_base;
  /* The kernel reuses a replaced or removed entry's memory at once, while we may be reading it. */
  barrier();
  return process->tgid == sample->tgid && (__u16)process->tables == sample->tables;
}

/* Returns 1 and prepares the walk if the process has tables. */
static __always_inline int prepare_walk(struct workspace* work, const struct user_registers* regs) {
  struct flamed_sample* sample = &work->record.sample;
  struct walk* walk = &work->walk;
  walk->sites = own_sites(&work->owners, sample->tgid, ++work->samples);
  struct known_sites* known = sites_of(walk);
  if (!known) return 0;

  walk->now_seconds = walk->began_ns / 1000000000ULL;
  walk->next_call = ~0ULL;
  /* Read before the tables: if they change meanwhile, the next sample looks them up again. */
  const __u32 edition = processes_edition;
  barrier();
  if (sites_are_of(known, sample, edition)) {
    sample->tables = (__u16)known->tables;
    walk->block = known->block;
    walk->first = known->first;
    walk->count = known->count;
    walk->runtime = known->runtime;
    walk->runtime_base = known->runtime_base;
    open_sites(known, sample, walk->now_seconds);
  } else if (find_tables(sample, walk)) {
    open_sites(known, sample, walk->now_seconds);
    known->block = walk->block;
    known->first = walk->first;
    known->count = walk->count;
    known->runtime = walk->runtime;
    known->runtime_base = walk->runtime_base;
    known->edition = edition;
  } else {
    sample->user_end = FLAMED_END_NO_PROCESS;
    return 0;
  }
  sample->user_end = FLAMED_END_DEPTH_LIMIT;
  if (!walk->count) return 0;
  walk->mapping.start = 0;
  walk->mapping.end = 0;
  walk->frame.pc = regs->pc;
  walk->frame.sp = regs->sp;
  walk->frame.fp = regs->fp;
  walk->frame.lr = regs->lr;
  walk->frame.lr_known = 1;
  walk->frame.fp_known = 1;
  walk->frame.interrupted = 1;
  walk->frame.known = FLAMED_KNOWN_ALL;
  walk->frame.stack_switches = 0;
  walk->frame.go_callback = 0;
  window_empty(&walk->stack);
  walk->guessed = 0;
  walk->is_news = 0;
  work->record.addresses[0] = regs->pc;
  sample->flags |= FLAMED_WALKED_BY_TABLES;
  sample->user_count = 1;
  return 1;
}

/*
 * The runtime of a process without tables, by its program's file: so that programs which end within a moment have their
 * functions. Returns 1 if the daemon need not be notified of the process: on a host that builds, notices of processes
 * that have ended by then cost more than their samples.
 */
static __always_inline int find_program(struct workspace* work, struct mm_struct* memory) {
  struct walk* walk = &work->walk;
  struct mm_struct___program* mm = (struct mm_struct___program*)memory;
  struct flamed_program_file file = {};
  struct inode* inode = BPF_CORE_READ(mm, exe_file, f_inode);
  file.inode = BPF_CORE_READ(inode, i_ino);
  file.device = BPF_CORE_READ(inode, i_sb, s_dev);
  struct flamed_known_program* program = bpf_map_lookup_elem(&known_programs, &file);
  if (!program) return 0;
  if (program->layout == FLAMED_NO_RUNTIME)
    return use_stack_slices &&
           bpf_ktime_get_boot_ns() - work->record.sample.start_boottime_ns < FLAMED_BRIEF_PROCESS_NS;
  if (!use_runtimes) return 0;
  walk->runtime_base = BPF_CORE_READ(mm, start_code) - program->first_code;
  walk->runtime = (__u32)program->layout;
  return 0;
}

static __always_inline int has_user_space_by_type(void) {
  const int has_memory = bpf_get_current_task_btf()->mm != 0;
  end_of_reads();
  return has_memory;
}

/* Returns the program that has to walk the stack, or NO_WALK: the user stack is complete. */
#define NO_WALK (-1)
static __always_inline int begin_user_stack(struct bpf_perf_event_data* ctx, struct task_struct* task,
                                            struct workspace* work) {
  struct flamed_sample* sample = &work->record.sample;
  struct user_registers regs;

  struct mm_struct* mm = read_by_type ? 0 : BPF_CORE_READ(task, mm);

  sample->user_count = 0;
  if (!(read_by_type ? has_user_space_by_type() : mm != 0)) {
    sample->user_end = FLAMED_END_NO_USER_SPACE;
    return NO_WALK;
  }
  if (!(read_by_type ? is_dumpable_by_type(bpf_get_current_task_btf()) : is_dumpable(task, mm)))
    sample->flags |= FLAMED_NOT_DUMPABLE;
  if (read_user_registers(ctx, task, &regs, work->walk.registers)) {
    sample->user_end = FLAMED_END_NO_REGISTERS;
    return NO_WALK;
  }
  if (regs.is_32bit) sample->flags |= FLAMED_COMPAT_32BIT;

  __u8 why_not = FLAMED_END_OUTERMOST;
  if (use_unwind_tables && walk_state != FLAMED_WALK_REFUSED && !regs.is_32bit) {
    sample->user_end = FLAMED_END_NO_PROCESS;
    if (walk_state == FLAMED_WALK_LOADED && prepare_walk(work, &regs)) return WALK_PROGRAM;
    why_not = sample->user_end;
  }
  begin_pointer_walk(&work->pointers, sample, work->record.addresses, &regs);
  if (why_not == FLAMED_END_NO_PROCESS) {
    sample->flags |= FLAMED_AWAITS_TABLES;
    if (read_by_type || !find_program(work, mm)) notify_daemon(work, FLAMED_END_NO_PROCESS);
  }
  return POINTER_WALK_PROGRAM;
}

static __always_inline void collect_kernel_stack(struct bpf_perf_event_data* ctx, struct flamed_record* record) {
  struct flamed_sample* sample = &record->sample;
  __u32 first = sample->user_count;
  FLAMED_OPAQUE(first); /* so that clang 13 uses the register that is checked */

  sample->kernel_count = 0;
  if (registers_are_user(&ctx->regs)) return;
  if (first > FLAMED_MAX_USER_FRAMES) return; /* for the verifier */
  long bytes = bpf_get_stack(ctx, &record->addresses[first], FLAMED_MAX_KERNEL_FRAMES * sizeof(__u64), 0);
  if (bytes <= 0) return;
  sample->kernel_count = (__u8)((__u64)bytes / sizeof(__u64));
  if (sample->kernel_count >= kernel_depth_limit) sample->flags |= FLAMED_KERNEL_DEPTH_LIMIT;
}

/* Null if the CPU has none. */
static __always_inline struct flamed_sample_ring* find_ring(__u32 cpu) {
  __u32 zero = 0;
  void* ring_map = bpf_map_lookup_elem(&sample_rings, &cpu);
  return ring_map ? bpf_map_lookup_elem(ring_map, &zero) : 0;
}

/* `may_have_linked`: a constant, so that programs without them have no code for it. */
static __always_inline void submit(struct workspace* work, __u32 cpu, struct flamed_counters* counter,
                                   const int may_have_linked) {
  struct flamed_record* record = &work->record;
  struct flamed_sample_ring* ring = find_ring(cpu);
  if (!ring) {
    counter->lost_no_ring++;
    return;
  }
  const struct linked_walk* linked = 0;
  __u32 zero = 0;
  if (may_have_linked && use_runtimes && record->sample.linked_frames)
    linked = bpf_map_lookup_elem(&linked_walks, &zero);
  const __u32 frames = (__u32)record->sample.user_count + record->sample.kernel_count;
  const __u32 words = (__u32)(__builtin_offsetof(struct flamed_record, addresses) / 8) + frames;
  record->type = PERF_RECORD_SAMPLE;
  record->misc = 0;
  record->size = (__u16)(words * 8);
  record->sample.linked_frames = 0; /* as if there were none, if its program is missing */
  if (linked) {
    record->sample.linked_frames = (__u16)linked->frame_count;
    record->sample.linked_calls = (__u16)linked->call_count;
    record->sample.linked_cut = (__u16)linked->is_cut;
    record->size += (__u16)(linked->frame_count * sizeof(struct flamed_linked_frame) + linked->call_count * 8);
  }
  record->time_ns = bpf_ktime_get_ns();
  const long waiting = ring_put(ring, record, words, FLAMED_MAX_RECORD_WORDS, linked);
  if (waiting < 0)
    counter->lost_ring_full++;
  else
    counter->submitted++;
  /* The daemon normally drains the ring long before, unless it is late or stacks are very deep. */
  if (waiting > FLAMED_SAMPLE_RING_BYTES / 2) notify_daemon(work, FLAMED_RING_FILLS);
}

/* Walks the kernel stack by the kernel's tables. Returns 0 if the kernel has to walk it. */
static __always_inline int collect_kernel_stack_by_tables(struct bpf_perf_event_data* ctx, struct workspace* work) {
  struct flamed_sample* sample = &work->record.sample;
  __u32 first = sample->user_count;
  struct user_registers regs;                   /* the kernel's registers here */
  FLAMED_OPAQUE(first);                         /* so that clang 13 uses the register that is checked */
  if (first > FLAMED_MAX_USER_FRAMES) return 0; /* for the verifier */
  registers_read(&ctx->regs, &regs);
  struct kernel_frame frame = {.ip = regs.pc, .sp = regs.sp, .bp = regs.fp, .exact = 1};
  sample->kernel_count =
      (__u8)walk_kernel_stack(&frame, &work->record.addresses[first], kernel_depth_limit, &work->walk.stack);
  return sample->kernel_count;
}

static __always_inline int finish(struct bpf_perf_event_data* ctx, struct workspace* work, const int by_tables,
                                  const int may_have_linked) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct flamed_counters* counter = bpf_map_lookup_elem(&counters, &cpu);
  if (!counter) return 0;
  if (!by_tables || !collect_kernel_stack_by_tables(ctx, work)) collect_kernel_stack(ctx, &work->record);
  submit(work, cpu, counter, may_have_linked);
  const __u64 run_ns = bpf_ktime_get_ns() - work->walk.began_ns;
  counter->run_ns += run_ns < FLAMED_LONGEST_RUN_NS ? run_ns : FLAMED_LONGEST_RUN_NS;
  return 0;
}

/* The user stack is complete: continues in walk_kernel(), if it is loaded and this is a sample of kernel code. */
static __always_inline int end_user_stack(struct bpf_perf_event_data* ctx, struct workspace* work) {
  if (!registers_are_user(&ctx->regs)) bpf_tail_call(ctx, &programs, KERNEL_WALK_PROGRAM);
  if (use_runtimes && work->record.sample.linked_frames) bpf_tail_call(ctx, &programs, LINKED_END_PROGRAM);
  bpf_tail_call(ctx, &programs, END_PROGRAM);
  /* Never: it is there before the first sample, and walks leave a call for it. Counted, so that no loss is silent. */
  __u32 cpu = bpf_get_smp_processor_id();
  struct flamed_counters* counter = bpf_map_lookup_elem(&counters, &cpu);
  if (counter) counter->lost_no_ring++;
  return 0;
}

/* The walk ended for want of tables or rows, which the daemon will soon have. */
static __always_inline int has_to_wait(const struct workspace* work) {
  const __u8 end = work->record.sample.user_end;
  if (!use_stack_slices) return 0;
  return end == FLAMED_END_NO_PROCESS || end == FLAMED_END_ROWS_PENDING ||
         (end == FLAMED_END_NO_MAPPING && work->walk.unmapped != FLAMED_UNMAPPED_FOR_GOOD);
}

/* The sample's walk has to wait: takes a slice of its stack along. */
SEC("perf_event")
int take_slice(struct bpf_perf_event_data* ctx) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct workspace* work = find_workspace();
  struct flamed_counters* counter = bpf_map_lookup_elem(&counters, &cpu);
  if (!work || !counter) return 0;
  struct flamed_sample_ring* ring = find_ring(cpu);
  if (ring) {
    const long waiting = put_slice(&ring->slices, &work->record.sample, work->walk.registers);
    if (waiting < 0)
      counter->slices_refused++;
    else
      counter->sliced++;
    if (waiting > FLAMED_SLICE_RING_BLOCKS / 2) notify_daemon(work, FLAMED_RING_FILLS);
  }
  return end_user_stack(ctx, work);
}

/* Ends are programs of their own, since the verifier follows each copy of them. */
SEC("perf_event")
int end_sample(struct bpf_perf_event_data* ctx) {
  struct workspace* work = find_workspace();
  return work ? finish(ctx, work, 0, 0) : 0;
}

SEC("perf_event")
int end_linked(struct bpf_perf_event_data* ctx) {
  struct workspace* work = find_workspace();
  return work ? finish(ctx, work, 0, 1) : 0;
}

/* Up to FRAMES_PER_RUN frames of a stack without tables; then itself again, or the runtime's frames. */
SEC("perf_event")
int walk_pointers(struct bpf_perf_event_data* ctx) {
  struct workspace* work = find_workspace();
  if (!work) return 0;
  struct flamed_sample* sample = &work->record.sample;

  for (__u64 i = 0; i < FRAMES_PER_RUN; i++) { /* 64 bits: see walk_user_stack() */
    if (!next_by_pointer(&work->pointers, sample, work->record.addresses)) break;
  }
  barrier();
  /* 29 calls at most. */
  if (sample->user_end == FLAMED_END_DEPTH_LIMIT && sample->user_count < FLAMED_MAX_USER_FRAMES)
    bpf_tail_call(ctx, &programs, POINTER_WALK_PROGRAM);
  /* Even a chain that ends with 0 may lack frames: code without frame pointers can leave the register alone. */
  if (sample->flags & FLAMED_AWAITS_TABLES) sample->user_end = FLAMED_END_NO_PROCESS;
  if (use_runtimes && work->walk.runtime && !(work->walk.runtime & FLAMED_SLOTS))
    bpf_tail_call(ctx, &programs, LINKED_WALK_PROGRAM);
  if (has_to_wait(work)) bpf_tail_call(ctx, &programs, SLICE_PROGRAM);
  return end_user_stack(ctx, work);
}

/* The end of a sample of kernel code. */
SEC("perf_event")
int walk_kernel(struct bpf_perf_event_data* ctx) {
  struct workspace* work = find_workspace();
  return work ? finish(ctx, work, 1, 1) : 0;
}

static __always_inline __u64 thread_pointer_by_type(void) {
#if defined(__TARGET_ARCH_arm64)
  const __u64 pointer = bpf_get_current_task_btf()->thread.uw.tp_value;
#else
  const __u64 pointer = bpf_get_current_task_btf()->thread.fsbase;
#endif
  end_of_reads();
  return pointer;
}

/* After the runtime's frames. */
static __always_inline int go_on(struct bpf_perf_event_data* ctx, struct workspace* work) {
  if (work->record.sample.flags & FLAMED_WALKED_BY_TABLES) bpf_tail_call(ctx, &programs, WALK_PROGRAM);
  if (has_to_wait(work)) bpf_tail_call(ctx, &programs, SLICE_PROGRAM);
  return end_user_stack(ctx, work);
}

/* Copies what tells of code objects that were met for the first time, in a process that may end soon. */
SEC("perf_event")
int copy_codes(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct workspace* work = find_workspace();
  struct linked_walk* linked = bpf_map_lookup_elem(&linked_walks, &zero);
  if (!work || !linked) return 0;
  const struct flamed_sample* sample = &work->record.sample;
  __u32 number = sample->linked_layout;
  const struct flamed_linked_layout* layout = bpf_map_lookup_elem(&linked_layouts, &number);
  if (!layout) return 0;

  for (__u32 i = 0; i < FLAMED_MOST_CODE_COPIES; i++) {
    if (i >= linked->copy_count) break;
    struct flamed_code_copy* copy = bpf_ringbuf_reserve(&code_copies, sizeof(*copy), 0);
    if (!copy) break;
    copy->tgid = sample->tgid;
    copy->reserved = 0;
    copy->start_boottime_ns = sample->start_boottime_ns;
    copy->code = linked->copies[i].code;
    copy->check = linked->copies[i].check;
    linked_copy_code(copy, layout, copy->code);
    bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
  }
  return go_on(ctx, work);
}

/*
 * Up to FLAMED_LINKED_RUN frames of the process's runtime; then itself again, or the walk of the native stack, which
 * finds out where the runtime's frames belong.
 */
SEC("perf_event")
int walk_linked_frames(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct workspace* work = find_workspace();
  struct linked_walk* linked = bpf_map_lookup_elem(&linked_walks, &zero);
  struct known_codes* known = bpf_map_lookup_elem(&known_codes, &zero);
  struct met_codes* met = bpf_map_lookup_elem(&met_codes, &zero);
  if (!work || !linked || !known || !met) return 0;
  __u32 number = work->walk.runtime;
  struct flamed_linked_layout* layout = bpf_map_lookup_elem(&linked_layouts, &number);
  if (!layout) return 0;

  struct flamed_sample* sample = &work->record.sample;
  if (!sample->linked_layout) {
    sample->linked_layout = (__u16)number;
    linked_begin(linked, layout, work->walk.runtime_base, read_by_type ? thread_pointer_by_type() : thread_pointer());
    linked->tgid = sample->tgid;
    linked->now_seconds = work->walk.now_seconds;
    const int is_changing = linked_trust(linked, met);
    linked->may_copy = layout->parts[0] &&
                       (is_changing || bpf_ktime_get_boot_ns() - sample->start_boottime_ns < FLAMED_YOUNG_PROCESS_NS);
  }
  const __u32 may_notify = may_notify_daemon(work);
  for (__u64 i = 0; i < FLAMED_LINKED_RUN; i++) { /* 64 bits: see walk_user_stack() */
    if (!linked_step(linked, layout, known, met, may_notify)) break;
  }
  linked->runs++;
  work->calls++;
  if (linked->at && linked->runs < LINKED_WALK_RUNS) bpf_tail_call(ctx, &programs, LINKED_WALK_PROGRAM);
  if (linked->at) linked->is_cut = 1;
  sample->linked_frames = (__u16)linked->frame_count;
  if (linked->is_news) notify_daemon(work, FLAMED_NEW_CODE);
  if (linked->frame_count && linked->call_count) work->walk.next_call = linked->calls[0] & FLAMED_CALL_ADDRESS;
  /* A long walk by frame pointers, which came before, has left no call for it. */
  if (linked->copy_count && sample->user_count <= FLAMED_MAX_USER_FRAMES - FRAMES_PER_RUN) {
    work->calls++;
    bpf_tail_call(ctx, &programs, CODE_COPY_PROGRAM);
  }
  return go_on(ctx, work);
}

/*
 * What up to FLAMED_SLOT_RUN native frames run, if they are the runtime's; then itself again, or the end of the sample.
 * Comes after the native walk.
 */
SEC("perf_event")
int walk_frame_slots(struct bpf_perf_event_data* ctx) {
  __u32 zero = 0;
  struct workspace* work = find_workspace();
  struct linked_walk* linked = bpf_map_lookup_elem(&linked_walks, &zero);
  struct known_codes* known = bpf_map_lookup_elem(&known_codes, &zero);
  struct met_codes* met = bpf_map_lookup_elem(&met_codes, &zero);
  if (!work || !linked || !known || !met) return 0;
  __u32 number = work->walk.runtime & (FLAMED_SLOTS - 1);
  struct flamed_slot_layout* layout = bpf_map_lookup_elem(&slot_layouts, &number);
  if (!layout) return 0;

  struct flamed_sample* sample = &work->record.sample;
  const __u32 may_notify = may_notify_daemon(work);
  if (!sample->linked_layout) {
    sample->linked_layout = (__u16)work->walk.runtime;
    slots_begin(linked);
    linked->tgid = sample->tgid;
    linked->now_seconds = work->walk.now_seconds;
    linked_trust(linked, met);
    struct slot_frame innermost = {work->stepped_by[0], 0, work->walk.registers};
    if (sample->user_count > 1 && slots_enter(linked, layout, known, met, &innermost, may_notify)) linked->at = 1;
  }
  barrier();
  for (__u64 i = 0; i < FLAMED_SLOT_RUN; i++) { /* 64 bits: see walk_user_stack() */
    const __u64 next = linked->at;
    if (next + 1 >= sample->user_count) break; /* the last one was not stepped over */
    linked->at = next + 1;
    struct slot_frame frame = {work->stepped_by[next & (FLAMED_MAX_USER_FRAMES - 1)], next, work->walk.registers};
    if (frame.stepped_by) slots_step(linked, layout, known, met, &frame, may_notify);
  }
  barrier();
  linked->runs++;
  if (linked->at + 1 < sample->user_count) {
    /* The native walk has left two calls; it may have needed less than it had. */
    if (linked->runs < SLOT_WALK_RUNS || ++work->calls < MOST_WALK_CALLS)
      bpf_tail_call(ctx, &programs, SLOT_WALK_PROGRAM);
    linked->is_cut = 1;
  }
  sample->linked_frames = (__u16)linked->frame_count;
  if (linked->is_news) notify_daemon(work, FLAMED_NEW_CODE);
  if (has_to_wait(work)) bpf_tail_call(ctx, &programs, SLICE_PROGRAM);
  return end_user_stack(ctx, work);
}

/* The innermost frame that has no callers yet has the runtime's next call on the stack. */
static __always_inline void join_call(struct workspace* work, __u32 frame) {
  __u32 zero = 0;
  struct linked_walk* linked = bpf_map_lookup_elem(&linked_walks, &zero);
  work->walk.next_call = linked ? linked_join(linked, frame) : ~0ULL;
}

/* The walk ended with FLAMED_END_NO_MAPPING. */
static __always_inline void end_unmapped(struct workspace* work, struct known_sites* known) {
  struct walk* walk = &work->walk;
  const __u32 count = work->record.sample.user_count;
  /* The page of code that led nowhere: the address beyond it may be another one each time. */
  const __u32 last = count >= 2 ? count - 2 : 0;
  const __u64 place = work->record.addresses[last & (FLAMED_MAX_USER_FRAMES - 1)] >> 12;
  /* After a guessed frame there was no caller, unless the runtime's code keeps frame pointers, as V8's does. */
  const __u32 runtime = walk->runtime & (FLAMED_SLOTS | FLAMED_INTERPRETED);
  const int is_guessed = walk->guessed && runtime != FLAMED_SLOTS;
  walk->unmapped = FLAMED_UNMAPPED_FOR_GOOD;
  if (!is_guessed) walk->unmapped = look_at_unmapped(known, place, walk->now_seconds);
  walk->is_news = walk->unmapped == FLAMED_UNMAPPED_NEW;
}

/* Adds the frame that the last step led to. Returns 0 if there is no room. */
static __always_inline int add_frame(struct workspace* work) {
  const __u32 count = work->record.sample.user_count;
  if (use_runtimes && work->walk.next_call < work->walk.frame.sp) join_call(work, count - 1);
  if (use_runtimes) work->stepped_by[(count - 1) & (FLAMED_MAX_USER_FRAMES - 1)] = work->walk.stepped_by;
  if (count >= FLAMED_MAX_USER_FRAMES) return 0;
  /* Every address but the first counts as a return address: adding one makes an interrupted address look like one. */
  const __u32 interrupted = work->walk.frame.interrupted;
  work->record.addresses[count] = work->walk.frame.pc + (interrupted ? 1 : 0);
  /* Likewise for the code that the handler returns to, which nothing has called: its address is its first byte. */
  if (interrupted && count > 1) work->record.addresses[count - 1]++;
  work->record.sample.user_count = (__u16)(count + 1);
  return 1;
}

/* Up to FRAMES_PER_RUN frames of a walk that sample_cpu() began; then itself again, or the end of the sample. */
SEC("perf_event")
int walk_user_stack(struct bpf_perf_event_data* ctx) {
  struct workspace* work = find_workspace();
  if (!work) return 0;
  struct flamed_sample* sample = &work->record.sample;
  struct known_sites* known = sites_of(&work->walk);
  if (!known) return 0;

  /*
   * 64 bits wide: if a compiler keeps the counter on the stack (clang 13), the verifier tracks its value only if it
   * fills the slot. Otherwise the loop looks endless.
   */
  for (__u64 i = 0; i < FRAMES_PER_RUN; i++) {
    const __u32 result = walk_one(&work->walk, known);
    if (result != FLAMED_STEP_NEXT) {
      sample->user_end = (__u8)result;
      break;
    }
    if (!add_frame(work)) break; /* user_end is DEPTH_LIMIT unless set otherwise */
  }
  /* From memory, so that the verifier goes on with one state, however the loop ended. */
  barrier();
  if (sample->user_end == FLAMED_STEP_APART) {
    const __u32 result = step_apart(&work->walk);
    sample->user_end = result == FLAMED_STEP_NEXT ? FLAMED_END_DEPTH_LIMIT : (__u8)result;
    if (result == FLAMED_STEP_NEXT) add_frame(work);
    barrier();
  }
  const __u8 end = sample->user_end;
  if (end == FLAMED_END_DEPTH_LIMIT && sample->user_count < FLAMED_MAX_USER_FRAMES && ++work->calls < MOST_WALK_CALLS)
    bpf_tail_call(ctx, &programs, WALK_PROGRAM);
  if (end == FLAMED_END_NO_MAPPING) end_unmapped(work, known);
  if (work->walk.is_news) notify_daemon(work, end);
  if (bpf_ktime_get_ns() - work->walk.began_ns >= FLAMED_GRACE_NS) {
    sample->user_count = 1;
    sample->user_end = FLAMED_END_NO_MAPPING;
    work->walk.unmapped = FLAMED_UNMAPPED_AWAITED;
    forget_sites(known);
  }
  if (use_runtimes && (work->walk.runtime & FLAMED_SLOTS)) bpf_tail_call(ctx, &programs, SLOT_WALK_PROGRAM);
  if (has_to_wait(work)) bpf_tail_call(ctx, &programs, SLICE_PROGRAM);
  return end_user_stack(ctx, work);
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data* ctx) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct flamed_counters* counter = bpf_map_lookup_elem(&counters, &cpu);
  struct workspace* work = find_workspace();
  if (!counter || !work) return 0;
  work->walk.began_ns = bpf_ktime_get_ns();
  counter->taken++;

  struct flamed_sample* sample = &work->record.sample;
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  __u64 pid_tgid = bpf_get_current_pid_tgid();

  sample->tgid = pid_tgid >> 32;
  sample->tid = (__u32)pid_tgid;
  struct thread_ids ids;
  if (read_by_type) {
    struct task_struct* typed = bpf_get_current_task_btf();
    sample->start_boottime_ns = typed->group_leader->start_boottime;
    sample->exec_id = typed->self_exec_id;
    read_ids_by_type(typed, &ids);
  } else {
    sample->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
    sample->exec_id = BPF_CORE_READ(task, self_exec_id);
    read_ids(task, &ids);
  }
  sample->owner = owner_of_current(&ids);
  sample->cgroup_id = bpf_get_current_cgroup_id();
  sample->weight_ns = period_ns;
  sample->kind = FLAMED_ON_CPU;
  sample->flags = 0;
  sample->tables = 0;
  sample->slice_blocks = 0;
  sample->linked_frames = 0;
  sample->linked_calls = 0;
  sample->linked_layout = 0;
  sample->linked_cut = 0;
  work->walk.runtime = 0;
  work->calls = 0;
  bpf_get_current_comm(sample->comm, sizeof(sample->comm));

  const int walk = begin_user_stack(ctx, task, work);
  if (walk == POINTER_WALK_PROGRAM) bpf_tail_call(ctx, &programs, POINTER_WALK_PROGRAM);
  if (walk == WALK_PROGRAM) {
    const __u32 runtime = use_runtimes ? work->walk.runtime : 0;
    if (runtime & FLAMED_SLOTS)
      work->calls = SLOT_WALK_RUNS; /* which come after the walk */
    else if (runtime)
      bpf_tail_call(ctx, &programs, LINKED_WALK_PROGRAM);
    bpf_tail_call(ctx, &programs, WALK_PROGRAM);
    /* Only if the program is missing, in spite of walk_state: the innermost frame is known. */
    sample->user_end = FLAMED_END_NO_INFORMATION;
  }
  return end_user_stack(ctx, work);
}
