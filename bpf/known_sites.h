/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process's samples found last at the places that its stacks go through: how to get from there to the caller, in
 * one word. Samples of a program meet the same few dozen places again and again. Looking one up in the tables comes
 * through its mapping, its module, a word of the cache of rules and the rule: four cache lines in as many pages, which
 * the program has pushed out of the CPU's caches by the next sample. Here all of a process lies in one page, next to
 * each other.
 *
 * A place's way to its caller depends on nothing but the process's tables, of which each edition has a number, and on
 * rows, which are the same for a file each time that they are built. So what stands here is right as long as the
 * process's tables are the same. Each CPU has its own, so that nothing is locked and no line wanders between CPUs.
 * Also compiled on the host, where unit tests define bpf_probe_read_user().
 */
#ifndef FLAMED_BPF_KNOWN_SITES_H
#define FLAMED_BPF_KNOWN_SITES_H

#include "stack_window.h"
#include "unwind_search.h"
#include "unwind_step.h"
#include "unwind_tables.h"

#define FLAMED_SITES 256 /* of each process: 4 KiB, in sets of two */
#define FLAMED_SITES_PER_LINE 4
/* Then all is looked up anew, in case the daemon knows better by now what a file's code is like. */
#define FLAMED_SITES_SECONDS 60
/*
 * A place that is used again after so long marks its module as sampled: those that were in the last 5 s keep their rows
 * (kInUseSeconds in daemon/unwind/unwind_publisher.cc).
 */
#define FLAMED_SITE_FRESH_SECONDS 2

/*
 * The way to the caller, as the rules of nearly all code say it: the CFA is a sum of the stack or frame pointer, and
 * what is saved stands in whole words below it. 0: there is none.
 */
#define FLAMED_HOP_BY_RULE 1          /* as the other bits say */
#define FLAMED_HOP_BY_FRAME_POINTER 2 /* all of it: there is no rule, see step_by_frame_pointer() */
#define FLAMED_HOP_OUTERMOST 3        /* all of it: there is no caller */
#define FLAMED_HOP_CFA_FROM_FP 4      /* else from sp */
#define FLAMED_HOP_RA_SHIFT 3         /* 7 bits: words from the return address to the CFA, at least 1 */
#define FLAMED_HOP_FP_SHIFT 10        /* 8 bits: words from the saved frame pointer to the CFA; 0: it is untouched */
#define FLAMED_HOP_CFA_SHIFT 18       /* 14 bits: words from sp or fp to the CFA */

struct known_site {
  __u64 address; /* that was looked up */
  __u32 hop;
  __u16 module; /* flamed_mapping.module, its lower half: 0xffff is FLAMED_NO_MODULE */
  __u8 marked;  /* when its module was last marked as sampled: seconds, their lowest 8 bits */
  __u8 stamp;   /* known_sites.stamp, else it is none of this process */
};

struct known_sites {
  __u64 start_boottime_ns; /* these four: whose, see flamed_sample */
  __u64 exec_id;
  __u32 tgid;
  __u32 tables;
  __u32 edition; /* of all processes' tables when `tables` and the next three were looked up, see processes_edition */
  __u32 block;   /* as in flamed_process */
  __u32 first;
  __u32 count;
  __u32 began_seconds;
  __u32 stamp; /* 1 to 255: the next one each time that it begins anew */
  __u64 reserved;
  struct known_site sites[FLAMED_SITES];
};

/* The rule in one word, or 0 if it does not fit. */
static __always_inline __u32 hop_of_rule(const struct flamed_unwind_rule* rule) {
  const __u32 cfa_kind = rule->cfa;
  const __u32 fp_kind = rule->fp;
  const __u32 cfa_offset = (__u32)rule->cfa_offset;
  const __u32 ra_below = -(__u32)rule->ra_offset;
  const __u32 fp_below = -(__u32)rule->fp_offset;
  __u32 hop = FLAMED_HOP_BY_RULE;

  if (cfa_kind == FLAMED_CFA_NONE) return FLAMED_HOP_BY_FRAME_POINTER;
  if (cfa_kind == FLAMED_CFA_OUTERMOST) return FLAMED_HOP_OUTERMOST;
  if (cfa_kind == FLAMED_CFA_FP_OFFSET)
    hop |= FLAMED_HOP_CFA_FROM_FP;
  else if (cfa_kind != FLAMED_CFA_SP_OFFSET)
    return 0;
  if (rule->ra != FLAMED_RA_AT_CFA || rule->ra_signed || rule->signal_frame) return 0;
  if ((cfa_offset & 7) || cfa_offset >= 8U << 14) return 0;
  if ((ra_below & 7) || ra_below == 0 || ra_below >= 8U << 7) return 0;
  if (fp_kind == FLAMED_FP_AT_CFA) {
    if ((fp_below & 7) || fp_below == 0 || fp_below >= 8U << 8) return 0;
    hop |= fp_below >> 3 << FLAMED_HOP_FP_SHIFT;
  } else if (fp_kind != FLAMED_FP_SAME) {
    return 0;
  }
  return hop | ra_below >> 3 << FLAMED_HOP_RA_SHIFT | cfa_offset >> 3 << FLAMED_HOP_CFA_SHIFT;
}

/* What step_by_rule() does with the rule that `hop` was made of. */
static __always_inline __u32 step_by_hop(struct walk_frame* frame, const __u32 hop, struct stack_window* stack) {
  const __u32 fp_words = hop >> FLAMED_HOP_FP_SHIFT & 0xff;
  __u64 cfa = frame->sp;
  __u64 pc = 0;
  __u64 fp = frame->fp;

  if (hop & FLAMED_HOP_CFA_FROM_FP) {
    if (!frame->fp_known) return FLAMED_END_UNKNOWN_REGISTER;
    cfa = frame->fp;
  }
  cfa += (__u64)(hop >> FLAMED_HOP_CFA_SHIFT) << 3;
  if (cfa <= frame->sp) return FLAMED_END_NOT_GROWING;
  const __u64 pc_at = cfa - ((hop >> FLAMED_HOP_RA_SHIFT & 0x7f) << 3);
  const __u64 fp_at = fp_words ? cfa - (fp_words << 3) : pc_at;
  window_show(stack, fp_at, pc_at);
  if (window_read(stack, &pc, pc_at)) return FLAMED_END_UNREADABLE;
  if (fp_words) {
    if (window_read(stack, &fp, fp_at)) return FLAMED_END_UNREADABLE;
    frame->fp_known = 1;
  }
  frame->fp = fp;
  frame->sp = cfa;
  frame->pc = pc;
  frame->lr_known = 0;
  frame->interrupted = 0;
  frame->innermost = 0;
  return pc == 0 ? FLAMED_END_OUTERMOST : FLAMED_STEP_NEXT;
}

/* The first of the two places in which an address may stand. */
static __always_inline __u32 site_set(__u64 address) {
  return ((__u32)address * 2654435761U >> 24 & (FLAMED_SITES / 2 - 1)) << 1;
}

/* Null when the address is not known. */
static __always_inline struct known_site* find_site(struct known_sites* known, __u64 address) {
  const __u32 at = site_set(address);
  struct known_site* set = &known->sites[at];
  if (set[0].address == address && set[0].stamp == known->stamp) return &set[0];
  if (set[1].address == address && set[1].stamp == known->stamp) return &set[1];
  return 0;
}

/* Is it time to mark the site's module as sampled? What no file is mapped to has none. */
static __always_inline int site_is_stale(const struct known_site* site, __u32 now_seconds) {
  return site->module != (__u16)FLAMED_NO_MODULE && (__u8)(now_seconds - site->marked) >= FLAMED_SITE_FRESH_SECONDS;
}

/* In the place of the older of the two. */
static __always_inline void remember_site(struct known_sites* known, __u64 address, __u32 hop, __u32 module,
                                          __u32 now_seconds) {
  const __u32 at = site_set(address);
  struct known_site* set = &known->sites[at];
  /* A stale one, which is looked up again, must not stand there twice. */
  if (set[0].address != address) set[1] = set[0];
  set[0].address = address;
  set[0].hop = hop;
  set[0].module = (__u16)module;
  set[0].marked = (__u8)now_seconds;
  set[0].stamp = (__u8)known->stamp;
}

/*
 * Has all cache lines fetched at the same time. A walk comes to one after the other, since it knows the next place only
 * when it has left the one before. Of a sample's time on small frames 0.88 is left with it and 0.96 without.
 */
static __always_inline void fetch_sites(const struct known_sites* known) {
  FLAMED_UNROLL
  for (int i = 0; i < FLAMED_SITES; i += FLAMED_SITES_PER_LINE) (void)*(const volatile __u64*)&known->sites[i].address;
}

/* Are they this process's, and is nothing of its tables newer? Then `tables` and the process's mappings are right. */
static __always_inline int sites_are_of(const struct known_sites* known, const struct flamed_sample* sample,
                                        __u32 edition) {
  return known->tgid == sample->tgid && known->start_boottime_ns == sample->start_boottime_ns &&
         known->exec_id == sample->exec_id && known->edition == edition;
}

/*
 * Makes them those of the process that was sampled: what they hold of another one, or of other tables, is forgotten.
 */
static __always_inline void open_sites(struct known_sites* known, const struct flamed_sample* sample,
                                       __u32 now_seconds) {
  if (known->tgid == sample->tgid && known->start_boottime_ns == sample->start_boottime_ns &&
      known->exec_id == sample->exec_id && known->tables == sample->tables &&
      now_seconds - known->began_seconds < FLAMED_SITES_SECONDS) {
    fetch_sites(known);
    return;
  }
  known->tgid = sample->tgid;
  known->start_boottime_ns = sample->start_boottime_ns;
  known->exec_id = sample->exec_id;
  known->tables = sample->tables;
  known->began_seconds = now_seconds;
  if (++known->stamp < 256) return;
  /* Of the sites that have this stamp from the last time, none may be taken for new. */
  known->stamp = 1;
  for (int i = 0; i < FLAMED_SITES; i++) known->sites[i].stamp = 0;
}

static __always_inline void forget_sites(struct known_sites* known) { known->tgid = 0; }

#endif /* FLAMED_BPF_KNOWN_SITES_H */
