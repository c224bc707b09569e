/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks a user stack by the unwind tables: finds the mapping, the module's page, the row and the rule of an address,
 * and steps to the caller. Code without rows is walked by its frame pointer.
 */
#ifndef FLAMED_BPF_UNWIND_WALK_H
#define FLAMED_BPF_UNWIND_WALK_H

#include <bpf/bpf_helpers.h>

#include "bpf/events.h"
#include "bpf/unwind_tables.h"

#include "known_sites.h"
#include "site_owners.h"
#include "unwind_search.h"
#include "unwind_step.h"

struct mapping_block {
  struct flamed_mapping mappings[FLAMED_BLOCK_MAPPINGS];
};

struct row_slab {
  __u32 rows[FLAMED_SLAB_ROWS];
};

/* Preallocated (about 3 MiB): before 6.1 the kernel refuses any other hash to perf_event programs. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FLAMED_MAX_PROCESSES);
  __type(key, __u32);
  __type(value, struct flamed_process);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, FLAMED_MAPPING_BLOCKS);
  __type(key, __u32);
  __type(value, struct mapping_block);
} mapping_blocks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, FLAMED_MAX_MODULES);
  __type(key, __u32);
  __type(value, struct flamed_unwind_module);
} unwind_modules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, FLAMED_MAX_PAGES);
  __type(key, __u32);
  __type(value, struct flamed_unwind_page);
} unwind_pages SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, FLAMED_MAX_RULES);
  __type(key, __u32);
  __type(value, struct flamed_unwind_rule);
} unwind_rules SEC(".maps");

struct row_slab_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, sizeof(struct row_slab));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, FLAMED_MAX_SLABS);
  __uint(key_size, sizeof(__u32));
  __array(values, struct row_slab_map);
} row_slabs SEC(".maps");

/* A cache of rules by place: see find_rule(). */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, FLAMED_CACHED_RULES);
  __type(key, __u32);
  __type(value, __u64);
} rule_cache SEC(".maps");

/* Index: see site_owners. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, FLAMED_SITE_PROCESSES);
  __type(key, __u32);
  __type(value, struct known_sites);
} process_sites SEC(".maps");

/* The state of a walk between runs of the program. */
struct walk {
  struct walk_frame frame;
  struct flamed_mapping mapping; /* of the last address */
  __u32 block;
  __u32 first;
  __u32 count;
  __u32 now_seconds;
  __u32 rule;     /* the last one that was looked up */
  __u32 sites;    /* the number of the process's cache of known sites, see site_owners */
  __u32 guessed;  /* a step followed a frame pointer, which in code without frame pointers may have any value */
  __u32 is_news;  /* the daemon should be notified now of how the walk ended */
  __u32 unmapped; /* enum flamed_unmapped, if it ended with FLAMED_END_NO_MAPPING */
  __u32 runtime;  /* as in flamed_process, as is the next one */
  __u64 runtime_base;
  /*
   * How the last step was made, for frame_slots.h: the frame pointer of a frame that has its return address and its
   * caller's stack pointer at fixed places; or the number of the register that had the latter; 0: otherwise.
   */
  __u64 stepped_by;
  __u64 fp_by_ra[FLAMED_RA_KINDS]; /* all 0 but that of FLAMED_RA_AT_FP */
  __u64 next_call;                 /* the next call of the runtime on this stack; ~0: there is none */
  __u64 began_ns;                  /* start of the sample, before any table was read */
  struct stack_window stack;
  __u64 registers[FLAMED_REGISTERS]; /* of the innermost frame, by DWARF number */
};

/* Sets walk->mapping to the mapping of `address`. Returns 0, or why there is none. */
static __always_inline __u32 enter_mapping(struct walk* walk, __u64 address) {
  __u32 block_index = walk->block;
  struct mapping_block* block = bpf_map_lookup_elem(&mapping_blocks, &block_index);
  if (!block || !walk->count || address >> 63) return FLAMED_END_NO_MAPPING;
  const __u32 at = find_mapping(block->mappings, walk->first, walk->count, address) & (FLAMED_BLOCK_MAPPINGS - 1);
  walk->mapping = block->mappings[at];
  if (address < walk->mapping.start || address >= walk->mapping.end) {
    walk->mapping.end = 0; /* covers nothing: the next address searches again */
    return FLAMED_END_NO_MAPPING;
  }
  return 0;
}

/* Searches the module's rows. FLAMED_NO_RULE if there are none. */
static __always_inline __u32 search_rule(const struct flamed_unwind_module* module, __u64 file_offset) {
  const __u64 page_number = (file_offset >> FLAMED_PAGE_SHIFT) - module->base_page;
  if (page_number >= module->page_count) return FLAMED_NO_RULE;
  __u32 key = module->first_page + (__u32)page_number;
  struct flamed_unwind_page* page = bpf_map_lookup_elem(&unwind_pages, &key);
  if (!page) return FLAMED_NO_RULE;
  const __u32 row_count = page->row_count;
  if (!row_count) return page->carry_rule;

  key = page->slab;
  void* slab_map = bpf_map_lookup_elem(&row_slabs, &key);
  if (!slab_map) return FLAMED_NO_RULE;
  key = 0;
  struct row_slab* slab = bpf_map_lookup_elem(slab_map, &key);
  if (!slab) return FLAMED_NO_RULE;
  const __u32 place = (__u32)file_offset & ((1U << FLAMED_PAGE_SHIFT) - 1);
  const __u32 first = page->first_row & (FLAMED_SLAB_ROWS - 1);
  if (slab->rows[first] >> 16 > place) return page->carry_rule;
  return find_row(slab->rows, first, row_count, place) & 0xffff;
}

/* Rows are missing: the daemon is notified once. */
static __always_inline void miss_rows(struct walk* walk, struct flamed_unwind_module* module, __u32* end) {
  *end = FLAMED_END_ROWS_PENDING;
  walk->is_news = !module->noticed;
  if (walk->is_news) module->noticed = 1;
}

/*
 * The rule at a place in a module's file. 0: there are no rows, see `end`.
 *
 * A program's samples meet the same call sites again, and a search reads page, slab and a dozen rows: about ten cache
 * lines that the program has meanwhile evicted from the CPU's caches. So the result of a search is cached in one word:
 * the rows' edition (32 bits), the upper half of the place and the rule (16 bits each). The place's lower half gives
 * the word's position, which the edition scatters. Measured on g++, python3 and node: 16 % less time for the whole
 * sample.
 */
static __always_inline struct flamed_unwind_rule* find_rule(struct walk* walk, __u64 file_offset, __u32* end) {
  __u32 key = walk->mapping.module;
  *end = 0;
  if (key == FLAMED_NO_MODULE) return 0;
  struct flamed_unwind_module* module = bpf_map_lookup_elem(&unwind_modules, &key);
  if (!module) return 0;
  const __u32 state = module->state;
  if (module->last_sampled != walk->now_seconds) module->last_sampled = walk->now_seconds;
  if (state == FLAMED_MODULE_WITHOUT_ROWS) return 0;
  if (state != FLAMED_MODULE_READY) {
    miss_rows(walk, module, end);
    return 0;
  }

  const __u32 edition = module->edition;
  const __u64 tag = (__u64)edition << 32 | (file_offset & 0xffff0000);
  key = ((__u32)file_offset ^ edition * 40503) & (FLAMED_CACHED_RULES - 1);
  volatile __u64* cached = bpf_map_lookup_elem(&rule_cache, &key);
  if (!cached) return 0;
  __u64 word = *cached;
  if ((word ^ tag) >> 16 || file_offset >> 32) {
    const __u32 found = search_rule(module, file_offset);
    if (found == FLAMED_NO_RULE) return 0;
    word = tag | found;
    /* A hypervisor may stop this CPU for longer than the daemon waits before it reuses a place. */
    barrier();
    if (module->state == FLAMED_MODULE_READY && module->edition == edition && !(file_offset >> 32)) *cached = word;
  }
  walk->rule = word & 0xffff;
  if (walk->rule == FLAMED_PENDING_RULE) {
    miss_rows(walk, module, end);
    return 0;
  }
  return bpf_map_lookup_elem(&unwind_rules, &walk->rule);
}

/*
 * Marks a known site's module as sampled. Returns 0 if the site must be looked up again: its rows have been evicted, or
 * there may be rows by now.
 */
static __always_inline int mark_module(struct known_site* site, __u32 now_seconds) {
  __u32 key = site->module;
  struct flamed_unwind_module* module = bpf_map_lookup_elem(&unwind_modules, &key);
  if (!module || site->hop == FLAMED_HOP_BY_FRAME_POINTER || module->state != FLAMED_MODULE_READY) return 0;
  if (module->last_sampled != now_seconds) module->last_sampled = now_seconds;
  site->marked = (__u8)now_seconds;
  return 1;
}

/* Never null, but the verifier needs the check. */
static __always_inline struct known_sites* sites_of(const struct walk* walk) {
  __u32 key = walk->sites & (FLAMED_SITE_PROCESSES - 1);
  return bpf_map_lookup_elem(&process_sites, &key);
}

/* Steps to the caller. Returns FLAMED_STEP_NEXT, or why the walk ends. */
static __always_inline __u32 walk_one(struct walk* walk, struct known_sites* known) {
  struct walk_frame* frame = &walk->frame;
  /* A return address belongs to the call before it, whose rule may differ. */
  const __u64 address = frame->interrupted ? frame->pc : frame->pc - 1;
  struct known_site* site = find_site(known, address);
  __u32 hop = 0;
  __u32 end;

  walk->stepped_by = 0;
  if (site && (!site_is_stale(site, walk->now_seconds) || mark_module(site, walk->now_seconds))) hop = site->hop;
  if (!hop) {
    if (address < walk->mapping.start || address >= walk->mapping.end) {
      end = enter_mapping(walk, address);
      if (end) return end;
    }
    struct flamed_unwind_rule* rule = find_rule(walk, address - walk->mapping.start + walk->mapping.file_offset, &end);
    if (end) return end;
    if (rule && needs_registers(rule)) return FLAMED_STEP_APART;
    hop = rule ? hop_of_rule(rule) : FLAMED_HOP_BY_FRAME_POINTER;
    if (rule && !hop) {
      /* By memory: the verifier would follow a branch in each frame, and from Linux 7 on arithmetic that hides one. */
      walk->fp_by_ra[FLAMED_RA_AT_FP] = frame->fp;
      walk->stepped_by = walk->fp_by_ra[rule->ra & (FLAMED_RA_KINDS - 1)];
      return step_by_rule(frame, rule, walk->registers, &walk->stack, 0);
    }
    remember_site(known, address, hop, walk->mapping.module, walk->now_seconds);
  }
  if (hop == FLAMED_HOP_OUTERMOST) return FLAMED_END_OUTERMOST;
  if (hop != FLAMED_HOP_BY_FRAME_POINTER) return step_by_hop(frame, hop, &walk->stack);
  walk->guessed = 1;
  walk->stepped_by = frame->fp;
  return step_by_frame_pointer(frame);
}

/* The step for which walk_one() has returned FLAMED_STEP_APART. */
static __always_inline __u32 step_apart(struct walk* walk) {
  struct flamed_unwind_rule* rule = bpf_map_lookup_elem(&unwind_rules, &walk->rule);
  if (rule && rule->cfa == FLAMED_CFA_REGISTER_OFFSET) walk->stepped_by = rule->other_register;
  return rule ? step_by_rule(&walk->frame, rule, walk->registers, &walk->stack, 1) : FLAMED_END_NO_INFORMATION;
}

#endif /* FLAMED_BPF_UNWIND_WALK_H */
