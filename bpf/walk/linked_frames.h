/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of a runtime that keeps them in a list, such as CPython: finds the state of the running thread by a layout
 * (runtimes/linked_frames.h explains it), and follows the list. Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_LINKED_FRAMES_H
#define FLAMED_BPF_LINKED_FRAMES_H

#include <linux/types.h>

#include "bpf/kernel/opaque.h"
#include "bpf/linked_layout.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define FLAMED_KNOWN_CODES 512 /* a power of two, as is the next one */
#define FLAMED_MET_CODES 65536
/* After this time a code object is looked at again. */
#define FLAMED_KNOWN_CODE_SECONDS 1

/* A code object that this CPU has met, and its check word. */
struct known_code {
  __u64 code;
  __u32 tgid;
  __u32 seconds; /* when the word was read */
  __u64 check;
};

struct known_codes {
  struct known_code codes[FLAMED_KNOWN_CODES];
};

/* Words of code objects that any CPU has met, of all processes: two places for each. */
struct met_codes {
  __u64 words[FLAMED_MET_CODES];
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
  walk->joined = 0;
  walk->is_news = 0;
  walk->may_copy = 0;
  walk->copy_count = 0;
  walk->runs = 0;
  walk->last = 0;
  walk->window_start = 0;
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
  walk->calls[count] = (address & FLAMED_CALL_ADDRESS) | FLAMED_NO_NATIVE_FRAME << FLAMED_CALL_BITS;
  walk->call_count = count + 1;
}

/* A word of the frame whose copy begins at words[first]. */
static __always_inline __u64 linked_copied(const struct linked_walk* walk, __u32 first, __u32 offset) {
  __u32 place = first + (offset >> 3);
  FLAMED_OPAQUE(place); /* so that it is masked in any case */
  return walk->words[place & (FLAMED_LINKED_WORDS - 1)];
}

static __always_inline __u64 linked_instruction(const struct linked_walk* walk,
                                                const struct flamed_linked_layout* layout, __u32 first, __u64 code) {
  const __u32 place = layout->instruction;
  const __u64 word = linked_copied(walk, first, place);
  __s64 index;
  if (layout->instruction_kind == FLAMED_INSTRUCTION_ADDRESS) {
    index = (__s64)(word - code - layout->first_instruction) >> 1;
  } else {
    /* 32 bits of a word, little-endian. */
    index = (__s32)(word >> (place & 4 ? 32 : 0));
    if (layout->instruction_kind == FLAMED_INSTRUCTION_BYTE_OFFSET) index >>= 1;
  }
  /* Unsigned: what lies before the first instruction is far away, too. */
  const __u64 after = (__u64)index + 1;
  return after < FLAMED_MOST_INSTRUCTION ? after : FLAMED_MOST_INSTRUCTION;
}

/* Never 0, unless it can't be read. */
static __always_inline __u64 linked_check(__u32 offset, __u32 check_words, __u64 code) {
  __u64 words[4] = {0, 0, 0, 0};
  const __u32 bytes = 8U * check_words & 63U;
  if (bytes > sizeof(words) || bpf_probe_read_user(words, bytes, (void*)(code + offset))) return 0;
  __u64 check = words[0] * 0x9e3779b97f4a7c15ULL ^ words[1] * 0xff51afd7ed558ccdULL;
  check ^= words[2] * 0xc4ceb9fe1a85ec53ULL ^ words[3] * 0xd6e8feb86659fd93ULL;
  check ^= check >> 29;
  return (check * 0x9e3779b97f4a7c15ULL >> (64 - FLAMED_CHECK_BITS)) | 1;
}

/* The check word of a code object, read again if that was some time ago: then `*is_new`. */
static __always_inline __u64 linked_known_check(const struct linked_walk* walk, __u32 offset, __u32 check_words,
                                                struct known_codes* known, __u64 code, __u32* is_new) {
  const __u64 hash = (code ^ (__u64)walk->tgid << 40) * 0x9e3779b97f4a7c15ULL;
  struct known_code* place = &known->codes[hash >> 32 & (FLAMED_KNOWN_CODES - 1)];
  if (place->code == code && place->tgid == walk->tgid &&
      walk->now_seconds - place->seconds < FLAMED_KNOWN_CODE_SECONDS)
    return place->check;
  const __u64 check = linked_check(offset, check_words, code);
  *is_new = 1;
  place->code = code;
  place->tgid = walk->tgid;
  place->seconds = walk->now_seconds;
  place->check = check;
  return check;
}

/* Copies the frame `at` unless it is there. Returns where it begins in `words`, or FLAMED_LINKED_WORDS. */
static __always_inline __u32 linked_show(struct linked_walk* walk, const struct flamed_linked_layout* layout,
                                         __u64 at) {
  const __u32 bytes = layout->frame_bytes & (FLAMED_LINKED_FRAME_BYTES - 1);
  const __u64 into = at - walk->window_start;
  const __u64 below = walk->last - at;
  if (walk->window_start && into <= FLAMED_LINKED_WINDOW_BYTES - bytes && !(into & 7)) return (__u32)(into >> 3);
  if (layout->boundary_kind != FLAMED_BOUNDARY_EACH_FRAME && (!walk->last || below <= FLAMED_LINKED_NEAR)) {
    walk->window_start = at + bytes - FLAMED_LINKED_WINDOW_BYTES;
    if (!bpf_probe_read_user(walk->words, FLAMED_LINKED_WINDOW_BYTES, (void*)walk->window_start))
      return (FLAMED_LINKED_WINDOW_BYTES - bytes) >> 3;
    walk->window_start = 0;
  }
  if (bpf_probe_read_user(&walk->words[FLAMED_LINKED_ALONE], bytes, (void*)at)) return FLAMED_LINKED_WORDS;
  return FLAMED_LINKED_ALONE;
}

/*
 * Has some CPU met a code object of this check word here before? From now on it has. Other code objects may take
 * its place in the table.
 */
static __always_inline int linked_is_met(const struct linked_walk* walk, struct met_codes* met, __u64 code,
                                         __u64 check) {
  const __u64 word = ((code ^ (__u64)walk->tgid << 40) * 0x9e3779b97f4a7c15ULL ^ check * 0xff51afd7ed558ccdULL) | 1;
  volatile __u64* first = &met->words[word >> 40 & (FLAMED_MET_CODES - 2)];
  volatile __u64* second = &met->words[(word >> 40 & (FLAMED_MET_CODES - 2)) + 1];
  const __u64 newest = *first;
  if (newest == word || *second == word) return 1;
  *second = newest;
  *first = word;
  return 0;
}

/* A code object that this CPU has not met lately. If none has, it is to be copied, or the daemon to be notified. */
static __always_inline void linked_note_new(struct linked_walk* walk, struct met_codes* met, __u64 code, __u64 check,
                                            int may_notify) {
  __u32 place = walk->copy_count;
  const int may_copy = walk->may_copy && place < FLAMED_MOST_CODE_COPIES;
  if ((!may_notify && !may_copy) || linked_is_met(walk, met, code, check)) return;
  if (may_notify) walk->is_news = 1;
  if (!may_copy) return;
  walk->copy_count = place + 1;
  FLAMED_OPAQUE(place); /* so that it is masked in any case */
  walk->copies[place & (FLAMED_MOST_CODE_COPIES - 1)].code = code;
  walk->copies[place & (FLAMED_MOST_CODE_COPIES - 1)].check = check;
}

/* Copies one part of a code object, or what there is of it before the end of the page. */
static __always_inline void linked_copy_part(struct flamed_code_copy* copy, __u32 part, __u64 address) {
  __u32 bytes = FLAMED_CODE_PART_BYTES;
  copy->places[part].address = address;
  copy->places[part].bytes = 0;
  if (!address) return;
  if (bpf_probe_read_user(copy->parts[part], FLAMED_CODE_PART_BYTES, (void*)address)) {
    bytes = 4096 - (address & 4095);
    FLAMED_OPAQUE(bytes);
    if (bytes >= FLAMED_CODE_PART_BYTES || bpf_probe_read_user(copy->parts[part], bytes, (void*)address)) return;
  }
  copy->places[part].bytes = bytes;
}

static __always_inline void linked_copy_code(struct flamed_code_copy* copy, const struct flamed_linked_layout* layout,
                                             __u64 code) {
  linked_copy_part(copy, 0, code);
  for (__u32 part = 1; part < FLAMED_CODE_PARTS; part++)
    linked_copy_part(copy, part, linked_word(code + layout->parts[part - 1]));
}

/*
 * One frame further. Returns 0 when the walk is over. Sets walk->is_news if it is of a code object that no CPU has met,
 * and `may_notify`.
 */
static __always_inline int linked_step(struct linked_walk* walk, const struct flamed_linked_layout* layout,
                                       struct known_codes* known, struct met_codes* met, int may_notify) {
  __u32 is_new = 0;
  const __u64 at = walk->at;
  const __u32 count = walk->frame_count;
  if (!at) return 0;
  walk->at = 0;
  const __u32 first = count < FLAMED_MAX_LINKED_FRAMES ? linked_show(walk, layout, at) : FLAMED_LINKED_WORDS;
  if (first == FLAMED_LINKED_WORDS) {
    walk->is_cut = 1;
    return 0;
  }
  walk->last = at;
  const __u32 boundary = (__u8)(linked_copied(walk, first, layout->boundary) >> (8 * (layout->boundary & 7)));
  walk->at = linked_copied(walk, first, layout->previous);
  if (layout->boundary_kind == FLAMED_BOUNDARY_OWN_FRAME && boundary >= layout->boundary_value) {
    linked_end_call(walk, at);
    return walk->at != 0;
  }
  /* The lowest bit tags references that are not counted. */
  const __u64 code = linked_copied(walk, first, layout->code) & ~7ULL;
  __u32 place = count;
  /* So that it is masked here: older verifiers forget the bounds of what clang keeps on the stack. */
  FLAMED_OPAQUE(place);
  struct flamed_linked_frame* frame = &walk->frames[place & (FLAMED_MAX_LINKED_FRAMES - 1)];
  frame->code = code >> 3 << FLAMED_INSTRUCTION_BITS | linked_instruction(walk, layout, first, code);
  const __u64 check = linked_known_check(walk, layout->check, layout->check_words, known, code, &is_new);
  if (is_new) linked_note_new(walk, met, code, check, may_notify);
  frame->check = (__u64)walk->call_count << FLAMED_CHECK_BITS | check;
  walk->frame_count = count + 1;
  if (layout->boundary_kind == FLAMED_BOUNDARY_MARKED && boundary) {
    linked_end_call(walk, walk->entry);
    if (walk->entry) walk->entry = linked_word(walk->entry + layout->next_call);
  }
  return walk->at != 0;
}

/*
 * The native frame with this number has the walk's next call on the stack. Returns the address of the call after it, or
 * ~0.
 */
static __always_inline __u64 linked_join(struct linked_walk* walk, __u64 native_frame) {
  __u32 call = walk->joined;
  if (call >= FLAMED_MAX_LINKED_CALLS) return ~0ULL;
  walk->calls[call] = (walk->calls[call] & FLAMED_CALL_ADDRESS) | native_frame << FLAMED_CALL_BITS;
  call++;
  walk->joined = call;
  FLAMED_OPAQUE(call); /* so that clang uses the register that is checked */
  if (call >= walk->call_count || call >= FLAMED_MAX_LINKED_CALLS) return ~0ULL;
  return walk->calls[call] & FLAMED_CALL_ADDRESS;
}

#endif /* FLAMED_BPF_LINKED_FRAMES_H */
