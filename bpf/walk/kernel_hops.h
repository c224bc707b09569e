/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps from kernel code to its caller, on x86-64: the row of an address in the kernel's own unwind tables (ORC),
 * packed into one word (a hop), and a cache of hops for each CPU, so that hardly any frame needs a search in the
 * tables. An address's hop depends only on the kernel's own text and tables, which never change, so the cache is valid
 * as long as the kernel runs. Also compiled on the host, where unit tests define bpf_probe_read_kernel().
 */
#ifndef FLAMED_BPF_KERNEL_HOPS_H
#define FLAMED_BPF_KERNEL_HOPS_H

#include "bpf/kernel_tables.h"
#include "stack_window.h"
#include "unwind_search.h"

/* A hop. 0: none. */
#define FLAMED_KERNEL_HOP_KIND 3        /* the lower two bits: */
#define FLAMED_KERNEL_HOP_CALL 1        /* the return address is below the CFA */
#define FLAMED_KERNEL_HOP_REGISTERS 2   /* the registers of the interrupted code are at the CFA */
#define FLAMED_KERNEL_HOP_END 3         /* the whole word: there is no caller */
#define FLAMED_KERNEL_HOP_UNSUPPORTED 4 /* the whole word, kind 0: the kernel's own unwinder walks this stack */
#define FLAMED_KERNEL_HOP_FROM_BP 8     /* else from sp */
#define FLAMED_KERNEL_HOP_INDIRECT 16
#define FLAMED_KERNEL_HOP_EXACT 32     /* the caller's address is exact, not a return address */
#define FLAMED_KERNEL_HOP_BP_AT_BP 64  /* the saved bp is at *bp */
#define FLAMED_KERNEL_HOP_BP_SHIFT 8   /* 8 bits: words from the saved bp to the CFA; 0: bp is unchanged */
#define FLAMED_KERNEL_HOP_CFA_SHIFT 16 /* signed: bytes from sp or bp to the CFA */

/* struct pt_regs (uapi). */
#define FLAMED_REGISTERS_BP 32
#define FLAMED_REGISTERS_IP 128
#define FLAMED_REGISTERS_CS 136
#define FLAMED_REGISTERS_SP 152

#define FLAMED_KERNEL_SITES 512 /* of each CPU: 4 KiB, in sets of four */
#define FLAMED_KERNEL_SITE_WAYS 4
#define FLAMED_KERNEL_SITES_PER_LINE 8

struct kernel_sites {
  /* Upper 32 bits: the lower half of the address, which is unique in kernel text. Lower 32 bits: its hop. 0: none. */
  __u64 words[FLAMED_KERNEL_SITES];
};

#define FLAMED_KERNEL_PAGE_BYTES 4096ULL

struct kernel_frame {
  __u64 ip;
  __u64 sp;
  __u64 bp;
  __u64 exact; /* ip is exact, not a return address: 1 or 0 */
};

/* The result of a step. */
enum flamed_kernel_step {
  FLAMED_KERNEL_STEP_NEXT = 0,
  FLAMED_KERNEL_STEP_END = 1,
  FLAMED_KERNEL_STEP_UNKNOWN = 2, /* the kernel's own unwinder has to walk this stack */
};

/*
 * Detects the numbering of the registers in rows of FLAMED_ORC_SIGNAL by the row of a C function's first instruction,
 * where the CFA is always 8 bytes above sp. Both numberings have the same fields.
 */
static __always_inline __u32 layout_of_first_row(const struct flamed_orc_row* row) {
  const __u32 sp_reg = row->bits & 15;
  const __u32 type = row->bits >> 8 & 7;
  if (row->sp_offset != 8 || type != 2) return FLAMED_ORC_UNKNOWN;
  if (sp_reg == FLAMED_ORC_REG_SP) return FLAMED_ORC_SIGNAL;
  return sp_reg == 3 ? FLAMED_ORC_RENUMBERED : FLAMED_ORC_UNKNOWN;
}

/* The register's number in all layouts but FLAMED_ORC_RENUMBERED. 15: unknown. */
static __always_inline __u32 orc_register(__u32 number, __u32 layout) {
  if (layout != FLAMED_ORC_RENUMBERED) return number;
  if (number == 0) return FLAMED_ORC_REG_UNDEFINED;
  if (number == 3) return FLAMED_ORC_REG_SP;
  if (number == 4) return FLAMED_ORC_REG_BP;
  if (number == 8) return FLAMED_ORC_REG_PREV_SP;
  if (number == 9) return FLAMED_ORC_REG_SP_INDIRECT;
  if (number == 10) return FLAMED_ORC_REG_BP_INDIRECT;
  return 15;
}

/* The row in one word. */
static __always_inline __u32 hop_of_orc_row(const struct flamed_orc_row* row, __u32 layout) {
  const __u32 bits = row->bits;
  const __u32 sp_reg = orc_register(bits & 15, layout);
  const __u32 bp_reg = orc_register(bits >> 4 & 15, layout);
  const __u32 bp_below = -(__u32)(__s32)row->bp_offset;
  __u32 type = bits >> 8 & 3;
  __u32 is_signal = bits >> 10 & 1;
  __u32 hop;

  if (layout == FLAMED_ORC_SIGNAL || layout == FLAMED_ORC_RENUMBERED) {
    type = bits >> 8 & 7;
    is_signal = bits >> 11 & 1;
    if (type == 1) return FLAMED_KERNEL_HOP_END;
    if (type != 2 && type != 3) return FLAMED_KERNEL_HOP_UNSUPPORTED;
    hop = type == 2 ? FLAMED_KERNEL_HOP_CALL : FLAMED_KERNEL_HOP_REGISTERS;
  } else if (layout == FLAMED_ORC_END || layout == FLAMED_ORC_SIGNAL_END) {
    const __u32 is_end = layout == FLAMED_ORC_END ? bits >> 10 & 1 : bits >> 11 & 1;
    if (sp_reg == FLAMED_ORC_REG_UNDEFINED && is_end) return FLAMED_KERNEL_HOP_END;
    if (type > 1) return FLAMED_KERNEL_HOP_UNSUPPORTED;
    hop = type == 0 ? FLAMED_KERNEL_HOP_CALL : FLAMED_KERNEL_HOP_REGISTERS;
    /* Before there was a bit for it, such registers were always of interrupted code. */
    if (layout == FLAMED_ORC_END) is_signal = type;
  } else {
    return FLAMED_KERNEL_HOP_UNSUPPORTED;
  }

  if (sp_reg == FLAMED_ORC_REG_BP || sp_reg == FLAMED_ORC_REG_BP_INDIRECT)
    hop |= FLAMED_KERNEL_HOP_FROM_BP;
  else if (sp_reg != FLAMED_ORC_REG_SP && sp_reg != FLAMED_ORC_REG_SP_INDIRECT)
    return FLAMED_KERNEL_HOP_UNSUPPORTED;
  if (sp_reg == FLAMED_ORC_REG_BP_INDIRECT || sp_reg == FLAMED_ORC_REG_SP_INDIRECT) hop |= FLAMED_KERNEL_HOP_INDIRECT;

  /* Saved registers include bp: no kernel has another row. */
  if (bp_reg != FLAMED_ORC_REG_UNDEFINED && (hop & FLAMED_KERNEL_HOP_KIND) != FLAMED_KERNEL_HOP_CALL)
    return FLAMED_KERNEL_HOP_UNSUPPORTED;
  if (bp_reg == FLAMED_ORC_REG_PREV_SP) {
    if ((bp_below & 7) || bp_below == 0 || bp_below >= 8U << 8) return FLAMED_KERNEL_HOP_UNSUPPORTED;
    hop |= bp_below >> 3 << FLAMED_KERNEL_HOP_BP_SHIFT;
  } else if (bp_reg == FLAMED_ORC_REG_BP && bp_below == 0) {
    hop |= FLAMED_KERNEL_HOP_BP_AT_BP;
  } else if (bp_reg != FLAMED_ORC_REG_UNDEFINED) {
    return FLAMED_KERNEL_HOP_UNSUPPORTED;
  }
  if (is_signal) hop |= FLAMED_KERNEL_HOP_EXACT;
  return hop | (__u32)(__u16)row->sp_offset << FLAMED_KERNEL_HOP_CFA_SHIFT;
}

/* The first of the possible places of an address. */
static __always_inline __u32 kernel_site_set(__u32 address) {
  return (address * 2654435761U >> 24 & (FLAMED_KERNEL_SITES / FLAMED_KERNEL_SITE_WAYS - 1)) * FLAMED_KERNEL_SITE_WAYS;
}

/* The hop of an address, 0 if it is not known. Without a branch, see unwind_search.h. */
static __always_inline __u32 find_kernel_hop(const struct kernel_sites* sites, __u32 address) {
  const __u32 set = kernel_site_set(address);
  __u64 hop = 0;
  FLAMED_UNROLL
  for (__u32 way = 0; way < FLAMED_KERNEL_SITE_WAYS; way++) {
    const __u64 word = sites->words[set + way];
    hop |= (word & 0xffffffff) * one_if_equal(word >> 32, address);
  }
  return (__u32)hop;
}

/* Replaces the oldest entry of the set. */
static __always_inline void remember_kernel_hop(struct kernel_sites* sites, __u32 address, __u32 hop) {
  const __u32 set = kernel_site_set(address);
  FLAMED_UNROLL
  for (__u32 way = FLAMED_KERNEL_SITE_WAYS - 1; way > 0; way--) sites->words[set + way] = sites->words[set + way - 1];
  sites->words[set] = (__u64)address << 32 | hop;
}

/* Fetches all cache lines at the same time, see fetch_sites(). */
static __always_inline void fetch_kernel_sites(const struct kernel_sites* sites) {
  FLAMED_UNROLL
  for (__u32 i = 0; i < FLAMED_KERNEL_SITES; i += FLAMED_KERNEL_SITES_PER_LINE)
    (void)*(const volatile __u64*)&sites->words[i];
}

/*
 * Copies a word of the stack, and the part of its page above it, into the window. Not beyond the page: the next one may
 * not belong to the stack. Returns 0 on success.
 */
static __always_inline long show_kernel_stack(struct stack_window* window, __u64 address) {
  if (window->start && address - window->start <= FLAMED_WINDOW_LAST) return 0;
  const __u64 line = address & ~(__u64)(FLAMED_WINDOW_ALIGNMENT - 1);
  const __u64 last = (address | (FLAMED_KERNEL_PAGE_BYTES - 1)) + 1 - sizeof(window->words);
  window->start = line < last ? line : last;
  if (!bpf_probe_read_kernel(window->words, sizeof(window->words), (void*)window->start)) return 0;
  window->start = 0;
  return -1;
}

/* Reads a word of the stack, from the window if it is there. Returns 0 on success. */
static __always_inline long read_kernel_stack(const struct stack_window* window, __u64* to, __u64 address) {
  const __u64 offset = address - window->start;
  if (window->start && offset <= FLAMED_WINDOW_LAST && !(offset & 7)) {
    *to = window->words[offset >> 3 & (FLAMED_WINDOW_WORDS - 1)];
    return 0;
  }
  return bpf_probe_read_kernel(to, 8, (void*)address);
}

/* From a frame to its caller, as unwind_next_frame() in arch/x86/kernel/unwind_orc.c does. */
static __always_inline __u32 step_by_kernel_hop(struct kernel_frame* frame, __u32 hop, struct stack_window* window) {
  const __u64 offset = (__u64)(__s64)((__s32)hop >> FLAMED_KERNEL_HOP_CFA_SHIFT);
  const __u64 bp_below = hop >> FLAMED_KERNEL_HOP_BP_SHIFT & 0xff;
  const __u32 kind = hop & FLAMED_KERNEL_HOP_KIND;
  __u64 cfa = hop & FLAMED_KERNEL_HOP_FROM_BP ? frame->bp : frame->sp;

  if (kind == FLAMED_KERNEL_HOP_END) return FLAMED_KERNEL_STEP_END;
  if (kind == 0) return FLAMED_KERNEL_STEP_UNKNOWN;
  if (hop & FLAMED_KERNEL_HOP_INDIRECT) {
    /* Such code has changed to another stack, which may be anywhere. */
    const __u64 behind = hop & FLAMED_KERNEL_HOP_FROM_BP ? 0 : offset;
    if (read_kernel_stack(window, &cfa, cfa + offset - behind)) return FLAMED_KERNEL_STEP_UNKNOWN;
    cfa += behind;
  } else {
    cfa += offset;
    if (cfa <= frame->sp && kind == FLAMED_KERNEL_HOP_CALL) return FLAMED_KERNEL_STEP_UNKNOWN;
  }

  if (kind == FLAMED_KERNEL_HOP_REGISTERS) {
    __u64 segment = 0;
    if (read_kernel_stack(window, &segment, cfa + FLAMED_REGISTERS_CS)) return FLAMED_KERNEL_STEP_UNKNOWN;
    if (segment & 3) return FLAMED_KERNEL_STEP_END; /* of user space */
    if (read_kernel_stack(window, &frame->ip, cfa + FLAMED_REGISTERS_IP) ||
        read_kernel_stack(window, &frame->sp, cfa + FLAMED_REGISTERS_SP) ||
        read_kernel_stack(window, &frame->bp, cfa + FLAMED_REGISTERS_BP))
      return FLAMED_KERNEL_STEP_UNKNOWN;
  } else {
    /* Saved registers are below the CFA, the return address directly below it. */
    const __u64 ip_at = cfa - 8;
    const __u64 bp_at = hop & FLAMED_KERNEL_HOP_BP_AT_BP ? frame->bp : cfa - (bp_below << 3);
    const int bp_saved = bp_at != cfa;
    if (show_kernel_stack(window, bp_saved && bp_at < ip_at ? bp_at : ip_at)) return FLAMED_KERNEL_STEP_UNKNOWN;
    if (read_kernel_stack(window, &frame->ip, ip_at)) return FLAMED_KERNEL_STEP_UNKNOWN;
    if (bp_saved && read_kernel_stack(window, &frame->bp, bp_at)) return FLAMED_KERNEL_STEP_UNKNOWN;
    frame->sp = cfa;
  }
  frame->exact = hop & FLAMED_KERNEL_HOP_EXACT ? 1 : 0;
  return FLAMED_KERNEL_STEP_NEXT;
}

#endif /* FLAMED_BPF_KERNEL_HOPS_H */
