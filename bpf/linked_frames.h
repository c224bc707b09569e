/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of a runtime that keeps them in a list, such as CPython: finds the state of the running thread by a layout
 * (runtimes/linked_frames.h explains it), and follows the list. Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_LINKED_FRAMES_H
#define FLAMED_BPF_LINKED_FRAMES_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define FLAMED_MAX_LINKED_FRAMES 512
#define FLAMED_MAX_LINKED_CALLS 64 /* from native code */
#define FLAMED_LINKED_RUN 256      /* frames and calls in one run of the program */
#define FLAMED_LINKED_COPY_BYTES 128

/* Bit for bit runtimes::ThreadStatePlace::Kind, after 0. */
enum flamed_state_place_kind {
  FLAMED_PLACE_NONE = 0,
  FLAMED_PLACE_THREAD_LOCAL = 1,
  FLAMED_PLACE_THREAD_BLOCK = 2,
  FLAMED_PLACE_THREAD_KEY = 3,
  FLAMED_PLACE_GLOBAL = 4,
};

struct flamed_state_place {
  __u64 kind; /* enum flamed_state_place_kind */
  __s64 offset;
  __u64 address; /* in the module: the process has it at this plus the module's base */
};

enum flamed_linked_instruction {
  FLAMED_INSTRUCTION_ADDRESS = 0,
  FLAMED_INSTRUCTION_BYTE_OFFSET = 1,
  FLAMED_INSTRUCTION_INDEX = 2,
};

enum flamed_linked_boundary {
  FLAMED_BOUNDARY_EACH_FRAME = 0,
  FLAMED_BOUNDARY_MARKED = 1,
  FLAMED_BOUNDARY_OWN_FRAME = 2,
};

struct flamed_linked_layout {
  struct flamed_state_place places[2]; /* tried in this order */
  __u16 thread_id;                     /* in a thread state: the thread pointer of its thread */
  __u16 innermost;       /* in a thread state: the address of the innermost frame, or of what has it ... */
  __u16 innermost_there; /* ... here, if `is_indirect` */
  __u8 is_indirect;
  __u8 frame_bytes; /* read of each frame; at most FLAMED_LINKED_COPY_BYTES - 1 */
  __u8 code;        /* in a frame, as are the next three; multiples of 8, or of 4 for an `instruction` of 32 bits */
  __u8 previous;
  __u8 instruction;
  __u8 boundary; /* one byte */
  __u8 boundary_value;
  __u8 boundary_kind;    /* enum flamed_linked_boundary */
  __u8 instruction_kind; /* enum flamed_linked_instruction */
  __u8 check_words;      /* 1 to 4, in a code object from `check` on: what tells it from another one at its address */
  __u16 check;
  __u16 first_instruction; /* in a code object */
  __u16 first_call;        /* with FLAMED_BOUNDARY_MARKED, in a thread state: the innermost call */
  __u16 next_call;         /* in a call */
  __u64 reserved;
};

/* What the walk found. */
struct flamed_linked_frame {
  __u64 code;  /* the code object's address >> 3 << 20 | the instruction plus 1, in units of two bytes */
  __u64 check; /* the number of the call << 48 | check word; the word is 0 if the code object could not be read */
};
#define FLAMED_INSTRUCTION_BITS 20
#define FLAMED_MOST_INSTRUCTION ((1ULL << FLAMED_INSTRUCTION_BITS) - 1) /* this one and all later ones */
#define FLAMED_CHECK_BITS 48

struct linked_walk {
  __u64 at;    /* the next frame; 0: the walk is over */
  __u64 entry; /* with FLAMED_BOUNDARY_MARKED: the call of the next frames */
  __u32 frame_count;
  __u32 call_count;
  __u32 is_cut; /* frames outside of the last one are missing: memory that can't be read, or too many */
  __u32 reserved;
  __u64 copy[FLAMED_LINKED_COPY_BYTES / 8];
  struct flamed_linked_frame frames[FLAMED_MAX_LINKED_FRAMES]; /* innermost first */
  __u64 calls[FLAMED_MAX_LINKED_CALLS]; /* what each has on the native stack; 0: nothing, they are joined by order */
};

/* 0 if it can't be read. */
static __always_inline __u64 linked_word(__u64 address) {
  __u64 value = 0;
  if (bpf_probe_read_user(&value, sizeof(value), (void*)address)) return 0;
  return value;
}

/* glibc on x86-64, nptl/descr.h and sysdeps/x86_64/nptl/tls.h: offsets from the thread pointer. */
#define FLAMED_GLIBC_BLOCKS 8         /* the address of {block, to free} by number: 16 bytes each */
#define FLAMED_GLIBC_KEY_VALUES 0x310 /* {sequence, value} of the first 32 keys */
#define FLAMED_GLIBC_FIRST_KEYS 32

/* The address of a thread state, or 0. */
static __always_inline __u64 linked_state(const struct flamed_state_place* place, __u64 base, __u64 thread_pointer) {
  __u64 at = base + place->address;
  __u64 number;
  switch (place->kind) {
    case FLAMED_PLACE_THREAD_LOCAL:
      at = thread_pointer + (__u64)place->offset;
      break;
    case FLAMED_PLACE_THREAD_BLOCK:
      number = linked_word(at);
      at = linked_word(thread_pointer + FLAMED_GLIBC_BLOCKS);
      if (!number || !at) return 0;
      at = linked_word(at + 16 * number);
      if (at + 1 <= 1) return 0; /* -1: not allocated yet */
      at += (__u64)place->offset;
      break;
    case FLAMED_PLACE_THREAD_KEY:
      number = linked_word(at) & 0xffffffff;
      if (number >= FLAMED_GLIBC_FIRST_KEYS) return 0;
      at = thread_pointer + FLAMED_GLIBC_KEY_VALUES + 16 * number + 8;
      break;
    case FLAMED_PLACE_GLOBAL:
      break;
    default:
      return 0;
  }
  return linked_word(at);
}

/* Finds the innermost frame. */
static __always_inline void linked_begin(struct linked_walk* walk, const struct flamed_linked_layout* layout,
                                         __u64 base, __u64 thread_pointer) {
  __u64 state = linked_state(&layout->places[0], base, thread_pointer);
  walk->at = 0;
  walk->entry = 0;
  walk->frame_count = 0;
  walk->call_count = 0;
  walk->is_cut = 0;
  if (!state || linked_word(state + layout->thread_id) != thread_pointer) {
    state = linked_state(&layout->places[1], base, thread_pointer);
    if (!state || linked_word(state + layout->thread_id) != thread_pointer) return;
  }
  walk->at = linked_word(state + layout->innermost);
  if (layout->is_indirect && walk->at) walk->at = linked_word(walk->at + layout->innermost_there);
  if (layout->boundary_kind == FLAMED_BOUNDARY_MARKED) walk->entry = linked_word(state + layout->first_call);
}

static __always_inline void linked_end_call(struct linked_walk* walk, __u64 address) {
  const __u32 count = walk->call_count;
  if (count >= FLAMED_MAX_LINKED_CALLS) return;
  walk->calls[count] = address;
  walk->call_count = count + 1;
}

static __always_inline __u64 linked_instruction(const struct linked_walk* walk,
                                                const struct flamed_linked_layout* layout, __u64 code) {
  const __u32 place = layout->instruction;
  __s64 index;
  if (layout->instruction_kind == FLAMED_INSTRUCTION_ADDRESS) {
    index = (__s64)(walk->copy[(place >> 3) & 15] - code - layout->first_instruction) >> 1;
  } else {
    /* 32 bits of a word, little-endian. */
    index = (__s32)(walk->copy[(place >> 3) & 15] >> (place & 4 ? 32 : 0));
    if (layout->instruction_kind == FLAMED_INSTRUCTION_BYTE_OFFSET) index >>= 1;
  }
  /* Unsigned: what lies before the first instruction is far away, too. */
  const __u64 after = (__u64)index + 1;
  return after < FLAMED_MOST_INSTRUCTION ? after : FLAMED_MOST_INSTRUCTION;
}

/* Never 0, unless it can't be read. */
static __always_inline __u64 linked_check(const struct flamed_linked_layout* layout, __u64 code) {
  __u64 words[4] = {0, 0, 0, 0};
  const __u32 bytes = 8U * layout->check_words & 63U;
  if (bytes > sizeof(words) || bpf_probe_read_user(words, bytes, (void*)(code + layout->check))) return 0;
  __u64 check = words[0] * 0x9e3779b97f4a7c15ULL ^ words[1] * 0xff51afd7ed558ccdULL;
  check ^= words[2] * 0xc4ceb9fe1a85ec53ULL ^ words[3] * 0xd6e8feb86659fd93ULL;
  check ^= check >> 29;
  return (check * 0x9e3779b97f4a7c15ULL >> (64 - FLAMED_CHECK_BITS)) | 1;
}

/* One frame further. Returns 0 when the walk is over. */
static __always_inline int linked_step(struct linked_walk* walk, const struct flamed_linked_layout* layout) {
  const __u64 at = walk->at;
  const __u32 bytes = layout->frame_bytes & (FLAMED_LINKED_COPY_BYTES - 1);
  const __u32 count = walk->frame_count;
  if (!at) return 0;
  walk->at = 0;
  if (count >= FLAMED_MAX_LINKED_FRAMES || bpf_probe_read_user(walk->copy, bytes, (void*)at)) {
    walk->is_cut = 1;
    return 0;
  }
  const __u32 boundary = (__u8)(walk->copy[(layout->boundary >> 3) & 15] >> (8 * (layout->boundary & 7)));
  walk->at = walk->copy[(layout->previous >> 3) & 15];
  if (layout->boundary_kind == FLAMED_BOUNDARY_OWN_FRAME && boundary >= layout->boundary_value) {
    linked_end_call(walk, at);
    return walk->at != 0;
  }
  /* The lowest bit tags references that are not counted. */
  const __u64 code = walk->copy[(layout->code >> 3) & 15] & ~7ULL;
  struct flamed_linked_frame* frame = &walk->frames[count & (FLAMED_MAX_LINKED_FRAMES - 1)];
  frame->code = code >> 3 << FLAMED_INSTRUCTION_BITS | linked_instruction(walk, layout, code);
  frame->check = (__u64)walk->call_count << FLAMED_CHECK_BITS | linked_check(layout, code);
  walk->frame_count = count + 1;
  if (layout->boundary_kind == FLAMED_BOUNDARY_EACH_FRAME) linked_end_call(walk, 0);
  if (layout->boundary_kind == FLAMED_BOUNDARY_MARKED && boundary) {
    linked_end_call(walk, walk->entry);
    if (walk->entry) walk->entry = linked_word(walk->entry + layout->next_call);
  }
  return walk->at != 0;
}

#endif /* FLAMED_BPF_LINKED_FRAMES_H */
