/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of a runtime that keeps frame pointers, and what it runs at fixed places below them, such as V8 and HotSpot's
 * interpreter. The native walk notes the frame pointer of each frame that it steps over by one alone. This pass goes
 * over them when the walk is done, and reads the function and the instruction of those that are the runtime's, by a
 * layout (runtimes/frame_slots.h explains it). Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_FRAME_SLOTS_H
#define FLAMED_BPF_FRAME_SLOTS_H

#include "bpf/stack_slice.h"
#include "linked_frames.h"

/* What a pass needs of the native walk. */
struct slot_frame {
  __u64 stepped_by;       /* the frame pointer, or the number of the register that has the CFA */
  __u64 number;           /* of the native frame; 0: the innermost one, whose registers are known */
  const __u64* registers; /* by DWARF number */
};

static __always_inline void slots_begin(struct linked_walk* walk) {
  walk->at = 0;
  walk->frame_count = 0;
  walk->call_count = 0;
  walk->is_cut = 0;
  walk->is_news = 0;
  walk->runs = 0;
  walk->generation = 0;
}

/* Of the words that were copied: the one so many below the frame pointer. */
static __always_inline __u64 slot_word(const struct linked_walk* walk, const struct flamed_slot_layout* layout,
                                       __u32 below) {
  __u32 place = (__u32)layout->lowest - below;
  FLAMED_OPAQUE(place); /* so that it is masked in any case */
  return walk->words[place & (FLAMED_SLOT_WORDS - 1)];
}

/* As in linked_instruction(): plus 1. */
static __always_inline __u64 slot_instruction(const struct linked_walk* walk, const struct flamed_slot_layout* layout,
                                              const struct slot_frame* frame, __u64 code) {
  const int is_address = layout->instruction_kind == FLAMED_SLOT_ADDRESS;
  const __u64 word = slot_word(walk, layout, layout->instruction);
  const __u64 guard = slot_word(walk, layout, layout->guard);
  const __u64 first = layout->first_instruction + (is_address ? code : 0);
  __u32 guard_register = layout->guard_register;
  __u32 instruction_register = layout->instruction_register;
  __u64 index = word;

  FLAMED_OPAQUE(guard_register);
  FLAMED_OPAQUE(instruction_register);
  if (!is_address) index = (__u32)word ? ~0ULL : word >> 32; /* not a small integer */
  if (!frame->number && guard_register < FLAMED_REGISTERS && instruction_register < FLAMED_REGISTERS &&
      (frame->registers[guard_register] == guard ||
       frame->registers[guard_register] == frame->stepped_by + (guard << 3)))
    index = frame->registers[instruction_register];
  const __u64 after = index - first + 1;
  return after < FLAMED_MOST_INSTRUCTION ? after : FLAMED_MOST_INSTRUCTION;
}

/* Notes a frame that runs the function. Sets walk->is_news as linked_step() does. */
static __always_inline void slots_note(struct linked_walk* walk, const struct flamed_slot_layout* layout,
                                       struct known_codes* known, struct met_codes* met, const struct slot_frame* at,
                                       __u64 function, const int is_entered, __u32 may_notify) {
  __u32 is_new = 0;
  const __u64 code = linked_word((function & ~7ULL) + layout->code) & ~7ULL;
  if (!code) return;

  __u32 place = walk->frame_count;
  if (place >= FLAMED_MAX_LINKED_FRAMES) {
    walk->is_cut = 1;
    return;
  }
  const __u64 check = linked_known_check(walk, &layout->check, known, code, &is_new);
  if (!check) return;   /* another frame than the runtime's, or memory that is gone */
  FLAMED_OPAQUE(place); /* see linked_step() */
  struct flamed_linked_frame* frame = &walk->frames[place & (FLAMED_MAX_LINKED_FRAMES - 1)];
  frame->code = code >> 3 << FLAMED_INSTRUCTION_BITS | (is_entered ? 0 : slot_instruction(walk, layout, at, code));
  if (is_new && !linked_is_met(walk, met, code, check, is_new, (int)may_notify)) walk->is_news |= may_notify;
  frame->check = at->number << FLAMED_CHECK_BITS | check;
  walk->frame_count = walk->frame_count + 1;
}

/*
 * The innermost frame. Returns 1 if it is not complete yet: then its function is in a register, and before its first
 * instruction.
 */
static __always_inline int slots_enter(struct linked_walk* walk, const struct flamed_slot_layout* layout,
                                       struct known_codes* known, struct met_codes* met, const struct slot_frame* at,
                                       __u32 may_notify) {
  __u32 number = layout->entry_function_register;
  FLAMED_OPAQUE(number);
  if (number >= FLAMED_REGISTERS) return 0;
  if (at->stepped_by != layout->entry_cfa_register &&
      at->stepped_by - 8ULL * layout->lowest >= at->registers[FLAMED_SP_REGISTER])
    return 0;
  slots_note(walk, layout, known, met, at, at->registers[number], 1, may_notify);
  return 1;
}

/* A frame that is complete. */
static __always_inline void slots_step(struct linked_walk* walk, const struct flamed_slot_layout* layout,
                                       struct known_codes* known, struct met_codes* met, const struct slot_frame* at,
                                       __u32 may_notify) {
  const __u32 bytes = 8U * layout->lowest & (8 * FLAMED_SLOT_WORDS - 1);
  /* The walk has just read the words above them. */
  if (bpf_probe_read_user(walk->words, bytes, (void*)(at->stepped_by - bytes))) return;
  if (layout->mark_bits && !(slot_word(walk, layout, layout->mark) & layout->mark_bits)) return;
  slots_note(walk, layout, known, met, at, slot_word(walk, layout, layout->function), 0, may_notify);
}

#endif /* FLAMED_BPF_FRAME_SLOTS_H */
