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

#define FLAMED_KNOWN_CODES 1024 /* a power of two, as is the next one; the kernel takes 32 KiB for each CPU at most */
#define FLAMED_MET_CODES 65536
#define FLAMED_CHANGING_PROCESSES 256
/* After this time a code object is looked at again. */
#define FLAMED_KNOWN_CODE_SECONDS 1
/* But in each sample if it was met for the first time so lately, or if the process has so lately replaced one. */
#define FLAMED_YOUNG_CODE_SECONDS 2
#define FLAMED_REPLACED_CODE_SECONDS 60

/* A code object that this CPU has met, and its check word. */
struct known_code {
  __u64 code;
  __u32 tgid;
  __u32 seconds;    /* when the word was read */
  __u64 check;      /* above it the second from which on it has been there: 16 bits, so old ones may seem young again */
  __u64 generation; /* linked_walk.generation when the word was read */
};

struct known_codes {
  struct known_code codes[FLAMED_KNOWN_CODES];
};

/* Words of code objects that any CPU has met, of all processes: two places for each. */
struct met_codes {
  __u64 words[FLAMED_MET_CODES];
  __u64 changing[FLAMED_CHANGING_PROCESSES]; /* by tgid: itself << 32 | up to this second */
};

/* 0 if it can't be read: then the kernel clears the place. A branch for that would double the verifier's work. */
static __always_inline __u64 linked_word(__u64 address) {
  __u64 value = 0;
  bpf_probe_read_user(&value, sizeof(value), (void*)address);
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

/* Of the interpreter that the thread state belongs to: see linked_walk.generation. */
static __always_inline __u64 linked_generation(const struct flamed_linked_layout* layout, __u64 state) {
  if (!layout->generation) return 0;
  const __u64 interpreter = linked_word(state + layout->interpreter);
  const __u64 count = linked_word(interpreter + layout->generation);
  /* Addresses are multiples of 8. Two interpreters may have counted as far. */
  return count ? interpreter << 20 ^ count << 1 ^ 1 : 0;
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
  walk->generation = 0;
  if (!state || linked_word(state + layout->thread_id) != thread_pointer) {
    state = linked_state(&layout->places[1], base, thread_pointer);
    if (!state || linked_word(state + layout->thread_id) != thread_pointer) return;
  }
  walk->generation = linked_generation(layout, state);
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

/*
 * How long check words stand. With a generation until it changes, and at most a second, since the process may run
 * another program by then. Without one for a second, but not at all if the code is young or if the process replaces
 * code. Returns whether it does.
 */
static __always_inline int linked_trust(struct linked_walk* walk, const struct met_codes* met) {
  const __u64 changing = met->changing[walk->tgid & (FLAMED_CHANGING_PROCESSES - 1)];
  const int is_changing = changing >> 32 == walk->tgid && walk->now_seconds < (__u32)changing;
  walk->trust_seconds = is_changing && !walk->generation ? 0 : FLAMED_KNOWN_CODE_SECONDS;
  walk->young_seconds = walk->generation ? 0 : FLAMED_YOUNG_CODE_SECONDS;
  return is_changing;
}

static __always_inline __u64 linked_mix(__u64 check, __u64 word) { return (check ^ word) * 0x9e3779b97f4a7c15ULL; }

/*
 * The following has as few branches as can be: it runs in a loop over frames, and each branch there is a good part of
 * the verifier's work.
 */

/* 1 if it is not 0. */
static __always_inline __u64 linked_is_set(__u64 value) {
  __u64 negative = -value;
  FLAMED_OPAQUE(negative); /* so that clang does not see what this is */
  return (value | negative) >> 63;
}

/* The smaller one of signed numbers. */
static __always_inline __u64 linked_min(__u64 a, __u64 b) {
  __s64 more = (__s64)(a - b);
  FLAMED_OPAQUE(more);
  return b + (__u64)(more & more >> 63);
}

/* runtimes::read_check_word() computes the same. 0: it can't be read, else it is odd. */
static __always_inline __u64 linked_check(struct linked_walk* walk, const struct flamed_code_check* place, __u64 code) {
  __u64* words = &walk->words[FLAMED_LINKED_CHECK];
  __u32 name = (__u32)(place->name - place->at) >> 3;
  __u32 file = (__u32)(place->file - place->at) >> 3;
  const __u32 text_bytes = place->text_bytes & 8U;
  __u64 length = 0;
  __u64 hash = 0;
  __u64 end[2] = {0, 0};
  __u64 check = 0;
  for (__u32 i = 0; i < FLAMED_MOST_CHECK_WORDS; i++) words[i] = 0;
  __s64 failed = bpf_probe_read_user(words, 8U * place->words & 127U, (void*)(code + place->at));
  FLAMED_OPAQUE(failed);
  FLAMED_OPAQUE(name); /* so that they are masked in any case */
  FLAMED_OPAQUE(file);
  for (__u32 i = 0; i < FLAMED_MOST_CHECK_WORDS; i++) check = linked_mix(check, words[i]);

  const __u64 text = words[file & (FLAMED_LINKED_CHECK_WORDS - 1)];
  bpf_probe_read_user(&hash, text_bytes, (void*)(words[name & (FLAMED_LINKED_CHECK_WORDS - 1)] + FLAMED_TEXT_HASH));
  bpf_probe_read_user(&length, text_bytes, (void*)(text + FLAMED_TEXT_LENGTH));
  length = linked_min(length, FLAMED_MOST_CHECKED_TEXT);
  bpf_probe_read_user(end, 2 * text_bytes, (void*)(text + place->text + length - sizeof(end)));
  check = linked_mix(linked_mix(linked_mix(linked_mix(check, hash), length), end[0]), end[1]);
  return (linked_mix(check, check >> 32) >> (64 - FLAMED_CHECK_BITS) | 1) & ~(__u64)(failed >> 63);
}

#define FLAMED_CODE_REPLACED 2 /* in `*is_new`: another code object was there */

/* The check word of a code object, read again if it may have changed. `*is_new`, unless 0: it may be new. */
static __always_inline __u64 linked_known_check(struct linked_walk* walk, const struct flamed_code_check* where,
                                                struct known_codes* known, __u64 code, __u32* is_new) {
  const __u64 hash = (code ^ (__u64)walk->tgid << 40) * 0x9e3779b97f4a7c15ULL;
  struct known_code* place = &known->codes[hash >> 32 & (FLAMED_KNOWN_CODES - 1)];
  const __u64 other = (place->code ^ code) | (place->tgid ^ walk->tgid);
  const __u32 age = walk->now_seconds - place->seconds;
  const __u64 known_check = place->check << (64 - FLAMED_CHECK_BITS) >> (64 - FLAMED_CHECK_BITS);
  __u64 since = place->check >> FLAMED_CHECK_BITS;
  const __u64 known_seconds = (walk->now_seconds - since) & 0xffff;
  if (!(other | (place->generation ^ walk->generation)) && age < walk->trust_seconds &&
      known_seconds >= walk->young_seconds)
    return known_check;
  const __u64 check = linked_check(walk, where, code);
  const __u64 is_other = linked_is_set(other);
  const __u64 is_changed = linked_is_set(known_check ^ check);
  const __u64 is_replaced = is_changed & (is_other ^ 1);
  *is_new = (__u32)(is_other | linked_is_set(age) | is_replaced * FLAMED_CODE_REPLACED);
  since += known_seconds * (is_other | is_replaced);
  place->code = code;
  place->tgid = walk->tgid;
  place->seconds = walk->now_seconds;
  place->generation = walk->generation;
  place->check = since << FLAMED_CHECK_BITS | check;
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
 * Has some CPU met a code object of this check word here before? If not, from now on it has, if `may_enter`. Other code
 * objects may take its place in the table. Notes as well, if `is_new` says that other code was here before, that the
 * process replaces code: a branch of its own would cost the verifier more.
 */
static __always_inline int linked_is_met(const struct linked_walk* walk, struct met_codes* met, __u64 code, __u64 check,
                                         __u32 is_new, int may_enter) {
  const __u64 word = ((code ^ (__u64)walk->tgid << 40) * 0x9e3779b97f4a7c15ULL ^ check * 0xff51afd7ed558ccdULL) | 1;
  volatile __u64* first = &met->words[word >> 40 & (FLAMED_MET_CODES - 2)];
  volatile __u64* second = &met->words[(word >> 40 & (FLAMED_MET_CODES - 2)) + 1];
  const __u64 newest = *first;
  volatile __u64* changing = &met->changing[walk->tgid & (FLAMED_CHANGING_PROCESSES - 1)];
  const __u64 before = *changing;
  const __u64 until = ((__u64)walk->tgid << 32 | walk->now_seconds) + FLAMED_REPLACED_CODE_SECONDS;
  *changing = before + (until - before) * ((is_new & FLAMED_CODE_REPLACED) / FLAMED_CODE_REPLACED);
  if (!(linked_is_set(newest ^ word) & linked_is_set(*second ^ word))) return 1;
  if (!may_enter) return 0;
  *second = newest;
  *first = word;
  return 0;
}

/* A code object that this CPU has not met lately. If none has, it is to be copied, or the daemon to be notified. */
static __always_inline void linked_note_new(struct linked_walk* walk, struct met_codes* met, __u64 code, __u64 check,
                                            __u32 is_new, __u32 may_notify) {
  __u32 place = walk->copy_count;
  const __u32 may_copy = walk->may_copy & (place - FLAMED_MOST_CODE_COPIES) >> 31;
  if (linked_is_met(walk, met, code, check, is_new, (int)(may_notify | may_copy))) return;
  walk->is_news |= may_notify;
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
                                       struct known_codes* known, struct met_codes* met, __u32 may_notify) {
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
  const __u64 check = linked_known_check(walk, &layout->check, known, code, &is_new);
  if (is_new) linked_note_new(walk, met, code, check, is_new, may_notify);
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
