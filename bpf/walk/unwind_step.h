/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From one frame to its caller, by a rule. The C version of unwinder/step.h, which explains it; unit tests compare the
 * two, and define bpf_probe_read_user() for that.
 */
#ifndef FLAMED_BPF_UNWIND_STEP_H
#define FLAMED_BPF_UNWIND_STEP_H

#include "bpf/stack_slice.h"
#include "bpf/unwind_tables.h"
#include "return_address.h"
#include "stack_window.h"
#include "unwind_search.h"

/* Where tests on the host define bpf_probe_read_user(), they define this, too. */
#ifndef FLAMED_THREAD_POINTER
#include "bpf/kernel/thread_pointer.h"
#define FLAMED_THREAD_POINTER() thread_pointer()
#endif

/* Which registers of a frame are known, in addition to sp and fp. */
enum flamed_known {
  FLAMED_KNOWN_NONE = 0,
  FLAMED_KNOWN_ALL = 1,   /* the innermost frame: the thread's own */
  FLAMED_KNOWN_SAVED = 2, /* the frame that a signal has interrupted: the kernel saved them all at `base` */
  FLAMED_KNOWN_BASE = 3,  /* the base register: it is `base` */
};

struct walk_frame {
  __u64 pc;
  __u64 sp;
  __u64 fp;
  __u64 lr;          /* arm64 */
  __u32 interrupted; /* pc is exact, not a return address */
  __u32 fp_known;
  __u32 lr_known;
  __u32 known; /* enum flamed_known */
  __u32 stack_switches;
  __u64 go_callback;
  __u64 base;
  __u64 value; /* see read_register() */
  __u32 value_known;
  /* What a saved word is found from, by kind. In memory: the verifier would follow a branch for each kind in each
   * frame. */
  __u64 ra_from[FLAMED_RA_KINDS];
  __u64 fp_from[FLAMED_FP_KINDS];
};

#define FLAMED_READ_USER(to, address) bpf_probe_read_user(to, 8, (void*)(address))

/* The result of a step: FLAMED_STEP_NEXT, or why the walk ends (enum flamed_user_end). */
#define FLAMED_STEP_NEXT 0xff
/* The rule needs a step of its own, see needs_registers(). */
#define FLAMED_STEP_APART 0xfe

static __always_inline __u64 wide(__s32 offset) { return (__u64)(__s64)offset; }

/* Follows the frame pointer, for code without rules. */
static __always_inline __u32 step_by_frame_pointer(struct walk_frame* frame) {
  __u64 caller_fp = 0;
  __u64 return_address = 0;
  __u64 fp = frame->fp;

  if (!frame->fp_known) return FLAMED_END_NO_INFORMATION;
  if (fp == 0) return FLAMED_END_OUTERMOST;
  if (fp < frame->sp || (fp & 7)) return FLAMED_END_NO_INFORMATION;
  if (FLAMED_READ_USER(&caller_fp, fp) || FLAMED_READ_USER(&return_address, fp + 8)) return FLAMED_END_NO_INFORMATION;
  if (return_address == 0) return caller_fp == 0 ? FLAMED_END_OUTERMOST : FLAMED_END_NO_INFORMATION;
  frame->pc = without_signature(return_address);
  frame->sp = fp + 16;
  frame->fp = caller_fp;
  frame->interrupted = 0;
  frame->lr_known = 0;
  frame->known = FLAMED_KNOWN_NONE;
  return FLAMED_STEP_NEXT;
}

/* Where a register is in the words that the kernel saved for a signal handler: unwinder::saved_word(). */
static __always_inline __u64 saved_word(__u32 number) {
#if FLAMED_PC_REGISTER == 16
  if (number < 8) return 0xfa89becdU >> (number * 4) & 15;
  return number == FLAMED_PC_REGISTER ? number : number - 8;
#else
  return number;
#endif
}

/*
 * The one register that a rule may need: sets frame->value and frame->value_known. They are in memory so that the
 * verifier goes on with one state, whatever is known.
 */
static __always_inline void read_register(struct walk_frame* frame, const __u64* registers, __u32 number) {
  frame->value_known = 0;
  if (frame->known == FLAMED_KNOWN_NONE) return;
  if (frame->known == FLAMED_KNOWN_ALL) {
    if (number >= FLAMED_REGISTERS) return;
    frame->value = registers[number];
  } else if (frame->known == FLAMED_KNOWN_SAVED) {
    if (number > FLAMED_PC_REGISTER) return;
    if (FLAMED_READ_USER(&frame->value, frame->base + 8 * saved_word(number))) return;
  } else {
    if (number != FLAMED_BASE_REGISTER) return;
    frame->value = frame->base;
  }
  frame->value_known = 1;
}

/* The CFA by a rule for Go's stacks. FLAMED_STEP_NEXT, or why there is none. */
static __always_inline __u32 go_cfa(struct walk_frame* frame, const struct flamed_unwind_rule* rule, __u64* cfa,
                                    __u64* goroutine) {
  const __u32 is_system = rule->cfa_addend == 0;
  __u64 at;
  __u64 value = 0;

  if (rule->cfa == FLAMED_CFA_GO_FRAME) {
    if (!frame->fp_known) return FLAMED_END_UNKNOWN_REGISTER;
    *cfa = frame->fp + wide(rule->cfa_offset);
    return FLAMED_STEP_NEXT;
  }
  if (rule->cfa == FLAMED_CFA_GO_DEPTH) {
    __u64 depth = 0;
    at = frame->sp + wide(rule->cfa_offset);
    if (FLAMED_READ_USER(&depth, at) || FLAMED_READ_USER(&value, at + 8)) return FLAMED_END_UNREADABLE;
    if (FLAMED_READ_USER(&value, value + FLAMED_GO_STACK_END)) return FLAMED_END_UNREADABLE;
    *cfa = value - depth + wide(rule->cfa_addend);
    return FLAMED_STEP_NEXT;
  }
  at = FLAMED_THREAD_POINTER() - 8ULL * rule->other_register;
  if (FLAMED_READ_USER(&value, at)) return FLAMED_END_UNREADABLE;
  if (FLAMED_READ_USER(&value, value + FLAMED_GO_THREAD)) return FLAMED_END_UNREADABLE;
  if (FLAMED_READ_USER(&value, value + wide(rule->cfa_addend))) return FLAMED_END_UNREADABLE;
  if (value == 0) return FLAMED_END_OUTERMOST;
  *goroutine = value;
  at = is_system && frame->go_callback ? frame->go_callback : value + FLAMED_GO_SAVED_SP;
  if (FLAMED_READ_USER(&value, at)) return FLAMED_END_UNREADABLE;
  if (is_system) frame->go_callback = value;
  *cfa = value + wide(rule->cfa_offset);
  return FLAMED_STEP_NEXT;
}

/*
 * Does the rule need other registers than sp and fp, or say where they are? Few do. A loop over frames that had these
 * steps, too, would be twice the work for the verifier.
 */
static __always_inline int needs_registers(const struct flamed_unwind_rule* rule) {
  const __u32 cfa_kind = rule->cfa;
  return rule->base_words || (cfa_kind >= FLAMED_CFA_SIGNAL_FRAME && cfa_kind <= FLAMED_CFA_REGISTER_DEREF) ||
         rule->ra == FLAMED_RA_IN_REGISTER || rule->fp == FLAMED_FP_IN_REGISTER;
}

static __always_inline __u32 step_by_rule(struct walk_frame* frame, const struct flamed_unwind_rule* rule,
                                          const __u64* registers, struct stack_window* stack,
                                          const int with_registers) {
  const __u32 cfa_kind = rule->cfa;
  const __u32 fp_kind = rule->fp;
  const __u32 ra_kind = rule->ra;
  const __u32 base_words = rule->base_words;
  __u32 may_stay;
  __u32 pc_saved = 0;
  __u32 fp_saved = 0;
  __u64 cfa = 0;
  __u64 goroutine = 0;
  __u64 pc_at = 0;
  __u64 fp_at;
  __u64 pc = 0;
  __u64 fp = 0;
  __u32 fp_known = 1;

  if (cfa_kind == FLAMED_CFA_NONE) return step_by_frame_pointer(frame);
  if (cfa_kind == FLAMED_CFA_OUTERMOST) return FLAMED_END_OUTERMOST;
  if (cfa_kind == FLAMED_CFA_UNSUPPORTED || cfa_kind > FLAMED_CFA_GO_FRAME) return FLAMED_END_UNSUPPORTED;
  if ((fp_kind == FLAMED_FP_AT_FP || ra_kind == FLAMED_RA_AT_FP) && !frame->fp_known)
    return FLAMED_END_UNKNOWN_REGISTER;

  if (with_registers) read_register(frame, registers, rule->other_register);

  /* 1. The CFA, which is the caller's sp. */
  if (cfa_kind >= FLAMED_CFA_GO_SAVED) {
    const __u32 result = go_cfa(frame, rule, &cfa, &goroutine);
    if (result != FLAMED_STEP_NEXT) return result;
    if (++frame->stack_switches > FLAMED_MAX_STACK_SWITCHES) return FLAMED_END_NOT_GROWING;
  } else if (cfa_kind == FLAMED_CFA_FP_OFFSET || cfa_kind == FLAMED_CFA_FP_DEREF) {
    if (!frame->fp_known) return FLAMED_END_UNKNOWN_REGISTER;
    cfa = frame->fp;
  } else if (with_registers && (cfa_kind == FLAMED_CFA_REGISTER_OFFSET || cfa_kind == FLAMED_CFA_REGISTER_DEREF)) {
    if (!frame->value_known) return FLAMED_END_UNKNOWN_REGISTER;
    cfa = frame->value;
  } else {
    cfa = frame->sp;
  }
  if (cfa_kind < FLAMED_CFA_GO_SAVED) cfa += wide(rule->cfa_offset);
  if (cfa_kind == FLAMED_CFA_PLT && (frame->pc & 15) >= rule->plt_threshold) cfa += 8;
  if (cfa_kind == FLAMED_CFA_SP_DEREF || cfa_kind == FLAMED_CFA_FP_DEREF ||
      (with_registers && (cfa_kind == FLAMED_CFA_SIGNAL_FRAME || cfa_kind == FLAMED_CFA_REGISTER_DEREF))) {
    if (FLAMED_READ_USER(&cfa, cfa)) return FLAMED_END_UNREADABLE;
    cfa += wide(rule->cfa_addend);
  }
  /* With its return address in a register, a function may have nothing on the stack. */
  may_stay = frame->interrupted && (ra_kind == FLAMED_RA_IN_LR || ra_kind == FLAMED_RA_IN_REGISTER);
  if (cfa_kind < FLAMED_CFA_GO_SAVED && !rule->signal_frame && (may_stay ? cfa < frame->sp : cfa <= frame->sp))
    return FLAMED_END_NOT_GROWING;

  /* 2. All registers of interrupted code, or the base register. In memory, as in read_register(). */
  if (!with_registers) {
    frame->known = FLAMED_KNOWN_NONE;
  } else if (cfa_kind == FLAMED_CFA_SIGNAL_FRAME) {
    frame->known = FLAMED_KNOWN_SAVED;
    frame->base = frame->sp + wide(rule->fp_offset) - 8 * saved_word(FLAMED_FP_REGISTER);
  } else if (base_words == FLAMED_SAME_BASE) {
    frame->known = frame->value_known ? FLAMED_KNOWN_BASE : FLAMED_KNOWN_NONE;
    frame->base = frame->value;
  } else {
    frame->known = FLAMED_KNOWN_NONE;
    if (base_words && !FLAMED_READ_USER(&frame->base, cfa - 8ULL * base_words)) frame->known = FLAMED_KNOWN_BASE;
  }

  /* 3. The return address, or where it is saved. */
  if (ra_kind == FLAMED_RA_IN_LR) {
    if (!frame->interrupted || !frame->lr_known) return FLAMED_END_UNKNOWN_REGISTER;
    pc = frame->lr;
  } else if (with_registers && ra_kind == FLAMED_RA_IN_REGISTER) {
    if (!frame->value_known) return FLAMED_END_UNKNOWN_REGISTER;
    pc = frame->value;
  } else {
    frame->ra_from[FLAMED_RA_AT_CFA] = cfa;
    frame->ra_from[FLAMED_RA_AT_SP] = frame->sp;
    frame->ra_from[FLAMED_RA_IN_GO] = goroutine;
    frame->ra_from[FLAMED_RA_AT_FP] = frame->fp;
    pc_at = frame->ra_from[ra_kind & (FLAMED_RA_KINDS - 1)] + wide(rule->ra_offset);
    pc_saved = 1;
  }

  /* 4. The frame pointer, likewise. */
  fp_at = pc_at;
  if (fp_kind == FLAMED_FP_SAME) {
    fp = frame->fp;
    fp_known = frame->fp_known;
  } else if (fp_kind == FLAMED_FP_UNKNOWN) {
    fp_known = 0;
  } else if (with_registers && fp_kind == FLAMED_FP_IN_REGISTER) {
    fp_known = frame->value_known;
    fp = frame->value;
  } else {
    frame->fp_from[FLAMED_FP_AT_CFA] = cfa;
    frame->fp_from[FLAMED_FP_AT_SP] = frame->sp;
    frame->fp_from[FLAMED_FP_AT_FP] = frame->fp;
    fp_at = frame->fp_from[fp_kind & (FLAMED_FP_KINDS - 1)] + wide(rule->fp_offset);
    fp_saved = 1;
  }
  if (pc_saved || fp_saved) window_show(stack, fp_at, pc_saved ? pc_at : fp_at);
  if (pc_saved && window_read(stack, &pc, pc_at)) return FLAMED_END_UNREADABLE;
  if (fp_saved && window_read(stack, &fp, fp_at)) return FLAMED_END_UNREADABLE;

  /* 5. The link register, known only for interrupted code: the kernel saved x30 after x29. */
  frame->lr_known = 0;
#if defined(__TARGET_ARCH_arm64)
  if (rule->ra_signed) pc = without_signature(pc);
  if (cfa_kind == FLAMED_CFA_SIGNAL_FRAME)
    frame->lr_known = !FLAMED_READ_USER(&frame->lr, frame->sp + wide(rule->fp_offset) + 8);
#endif

  frame->fp_known = fp_known;
  frame->fp = fp;
  frame->sp = cfa;
  frame->pc = pc;
  frame->interrupted = rule->signal_frame != 0;
  /* Entry points that build the first frame themselves (Go's and others) end the chain with 0. */
  return pc == 0 ? FLAMED_END_OUTERMOST : FLAMED_STEP_NEXT;
}

#endif /* FLAMED_BPF_UNWIND_STEP_H */
