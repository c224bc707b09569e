/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of the sites that a process's stacks go through: the step from each to its caller, packed into one word (a
 * hop). Samples of a program meet the same few dozen sites again and again. Looking one up in the tables reads its
 * mapping, its module, a word of the cache of rules and the rule: four cache lines in as many pages, which the program
 * has evicted from the CPU's caches by the next sample. Here all sites of a process are in one page.
 *
 * A site's hop depends only on the process's tables, of which each edition has a number, and on rows, which are the
 * same for a file each time that they are built. So the cache is valid as long as the process's tables are the same.
 * Each CPU has its own, so that there are no locks and no shared cache lines. Also compiled on the host, where unit
 * tests define bpf_probe_read_user().
 */
#ifndef FLAMED_BPF_KNOWN_SITES_H
#define FLAMED_BPF_KNOWN_SITES_H

#include "bpf/unwind_tables.h"
#include "stack_window.h"
#include "unwind_search.h"
#include "unwind_step.h"

#define FLAMED_SITES 256 /* of each process: 4 KiB, in sets of two */
#define FLAMED_SITES_PER_LINE 4
/* After this time all sites are looked up again, in case the daemon has better rows by then. */
#define FLAMED_SITES_SECONDS 60
/*
 * A site that is used again after this time marks its module as sampled: modules sampled in the last 5 s keep their
 * rows (kInUseSeconds in daemon/unwind/unwind_publisher.cc).
 */
#define FLAMED_SITE_FRESH_SECONDS 2
/* As long as that, a new mapping may be on its way to the daemon, or from there. */
#define FLAMED_AWAITED_SECONDS 2

/*
 * The step to the caller, in the form of nearly all rules: the CFA is the stack or frame pointer plus an offset, and
 * registers are saved in whole words below it. 0: none.
 */
#define FLAMED_HOP_BY_RULE 1          /* see the other bits */
#define FLAMED_HOP_BY_FRAME_POINTER 2 /* the whole word: there is no rule, see step_by_frame_pointer() */
#define FLAMED_HOP_OUTERMOST 3        /* all of it: there is no caller */
#define FLAMED_HOP_SIGNED 2           /* with FLAMED_HOP_BY_RULE: so is the return address (arm64) */
#define FLAMED_HOP_CFA_FROM_FP 4      /* else from sp */
#define FLAMED_HOP_RA_SHIFT 3         /* 7 bits: words from the return address to the CFA, at least 1 */
#define FLAMED_HOP_FP_SHIFT 10        /* 8 bits: words from the saved frame pointer to the CFA; 0: it is unchanged */
#define FLAMED_HOP_CFA_SHIFT 18       /* 14 bits: words from sp or fp to the CFA */

/* An address in no mapping, see look_at_unmapped(). */
enum flamed_unmapped {
  FLAMED_UNMAPPED_NEW = 0, /* the daemon is to be notified */
  FLAMED_UNMAPPED_AWAITED = 1,
  FLAMED_UNMAPPED_FOR_GOOD = 2, /* the daemon has had the time to find a mapping */
};

struct known_site {
  __u64 address; /* of the look-up */
  __u32 hop;
  __u16 module; /* flamed_mapping.module, its lower half: 0xffff is FLAMED_NO_MODULE */
  __u8 marked;  /* when its module was last marked as sampled: the lowest 8 bits of the seconds */
  __u8 stamp;   /* equals known_sites.stamp, else the site is not of this process */
};

struct known_sites {
  __u64 start_boottime_ns; /* these four identify the process, see flamed_sample */
  __u64 exec_id;
  __u32 tgid;
  __u32 tables;
  __u32 edition; /* of all processes' tables at the look-up of `tables` and the next three, see processes_edition */
  __u32 block;   /* as in flamed_process */
  __u32 first;
  __u32 count;
  __u32 began_seconds;
  __u32 stamp;   /* 1 to 255, incremented each time that the cache is cleared */
  __u32 runtime; /* as in flamed_process, as is the next one */
  __u32 reserved;
  __u64 runtime_base;
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
  if (rule->ra != FLAMED_RA_AT_CFA || rule->signal_frame || rule->base_words) return 0;
  if (rule->ra_signed) hop |= FLAMED_HOP_SIGNED;
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

/* The same step as step_by_rule() with the rule of `hop`. */
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
#if defined(__TARGET_ARCH_arm64)
  /* Without a branch, which the verifier would follow in each frame. */
  pc &= USER_ADDRESS_MASK | ((hop / FLAMED_HOP_SIGNED & 1) - 1ULL);
#endif
  frame->fp = fp;
  frame->sp = cfa;
  frame->pc = pc;
  frame->lr_known = 0;
  frame->interrupted = 0;
  frame->known = FLAMED_KNOWN_NONE;
  return pc == 0 ? FLAMED_END_OUTERMOST : FLAMED_STEP_NEXT;
}

/* The first of the two possible places of an address. */
static __always_inline __u32 site_set(__u64 address) {
  return ((__u32)address * 2654435761U >> 24 & (FLAMED_SITES / 2 - 1)) << 1;
}

/* Null if the address is not known. */
static __always_inline struct known_site* find_site(struct known_sites* known, __u64 address) {
  const __u32 at = site_set(address);
  struct known_site* set = &known->sites[at];
  if (set[0].address == address && set[0].stamp == known->stamp) return &set[0];
  if (set[1].address == address && set[1].stamp == known->stamp) return &set[1];
  return 0;
}

/* Is it time to mark the site's module as sampled? Memory without a file has no module. */
static __always_inline int site_is_stale(const struct known_site* site, __u32 now_seconds) {
  return site->module != (__u16)FLAMED_NO_MODULE && (__u8)(now_seconds - site->marked) >= FLAMED_SITE_FRESH_SECONDS;
}

/* Replaces the older of the two. */
static __always_inline void remember_site(struct known_sites* known, __u64 address, __u32 hop, __u32 module,
                                          __u32 now_seconds) {
  const __u32 at = site_set(address);
  struct known_site* set = &known->sites[at];
  /* A stale one, which is looked up again, must not be there twice. */
  if (set[0].address != address) set[1] = set[0];
  set[0].address = address;
  set[0].hop = hop;
  set[0].module = (__u16)module;
  set[0].marked = (__u8)now_seconds;
  set[0].stamp = (__u8)known->stamp;
}

/*
 * A walk ended in no mapping, beyond the code at `place`, a number of a page. Where unwind information is wrong, each
 * walk does. The place is remembered like a site, until the process has other tables: the daemon gives it some as soon
 * as it finds a mapping.
 */
static __always_inline enum flamed_unmapped look_at_unmapped(struct known_sites* known, __u64 place,
                                                             __u32 now_seconds) {
  const __u64 address = ~place; /* no user code is there */
  const struct known_site* site = find_site(known, address);
  if (site) {
    return (__u8)(now_seconds - site->marked) < FLAMED_AWAITED_SECONDS ? FLAMED_UNMAPPED_AWAITED
                                                                       : FLAMED_UNMAPPED_FOR_GOOD;
  }
  remember_site(known, address, 0, FLAMED_NO_MODULE, now_seconds);
  return FLAMED_UNMAPPED_NEW;
}

/*
 * Fetches all cache lines at the same time. A walk reads one after the other, since each step gives the next address.
 * On small frames a sample takes 0.88 of the time with it and 0.96 without.
 */
static __always_inline void fetch_sites(const struct known_sites* known) {
  FLAMED_UNROLL
  for (int i = 0; i < FLAMED_SITES; i += FLAMED_SITES_PER_LINE) (void)*(const volatile __u64*)&known->sites[i].address;
}

/* Is the cache of this process, and current? Then `tables` and the process's mappings are valid. */
static __always_inline int sites_are_of(const struct known_sites* known, const struct flamed_sample* sample,
                                        __u32 edition) {
  return known->tgid == sample->tgid && known->start_boottime_ns == sample->start_boottime_ns &&
         known->exec_id == sample->exec_id && known->edition == edition;
}

/*
 * Prepares the cache for the sampled process: clears sites of another process, or of other tables.
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
  /* Old sites with this stamp must not be taken for new ones. */
  known->stamp = 1;
  for (int i = 0; i < FLAMED_SITES; i++) known->sites[i].stamp = 0;
}

static __always_inline void forget_sites(struct known_sites* known) { known->tgid = 0; }

#endif /* FLAMED_BPF_KNOWN_SITES_H */
