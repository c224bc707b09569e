/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One CPU's ring of samples, in memory that the program and the daemon share: the value of an array map. The program
 * writes on its own CPU only, the daemon reads and frees room, and neither needs a call. bpf_perf_event_output() of the
 * same records took 2.8 us of a sample: it reads half a dozen kernel structures that are not in the CPU's caches at
 * that rate. Also compiled on the host, where unit tests run it.
 */
#ifndef FLAMED_BPF_SAMPLE_RING_H
#define FLAMED_BPF_SAMPLE_RING_H

#include "events.h"
#include "linked_layout.h"
#include "stack_slice.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* A power of two. At 99 Hz the deepest stacks (2 KiB each) fill it in 2.5 s, stacks of servers in 12 s. */
#define FLAMED_SAMPLE_RING_BYTES 524288
#define FLAMED_SAMPLE_RING_WORDS (FLAMED_SAMPLE_RING_BYTES / 8)

struct flamed_sample_ring {
  __u64 head; /* bytes written so far; advanced by the program when a record is complete */
  __u64 head_reserved[7];
  __u64 tail; /* bytes read so far; advanced by the daemon when it does not need them any more */
  __u64 tail_reserved[7];
  __u64 words[FLAMED_SAMPLE_RING_WORDS];
  struct flamed_slice_ring slices;
};

/* A record is copied as words. */
typedef __u64 __attribute__((may_alias)) flamed_record_word;

/* Copies at most `most` words, behind the ring's `at` ones. */
static __always_inline void ring_copy(struct flamed_sample_ring* ring, __u32 at, const flamed_record_word* from,
                                      __u32 words, const __u32 most) {
  for (__u32 i = 0; i < most; i++) {
    if (i >= words) break;
    ring->words[(at + i) & (FLAMED_SAMPLE_RING_WORDS - 1)] = from[i];
  }
}

/*
 * Puts the record's `words` words, and behind them what `linked` has found, if it is not null. `most` is a constant:
 * the words of the largest record of its type. Returns the number of unread bytes, or -1 if there is no room for the
 * record.
 */
static __always_inline long ring_put(struct flamed_sample_ring* ring, const void* record, __u32 words, const __u32 most,
                                     const struct linked_walk* linked) {
  const __u64 head = ring->head;
  const __u32 start = (__u32)(head >> 3);
  const __u32 frame_words = linked ? linked->frame_count * (__u32)(sizeof(struct flamed_linked_frame) / 8) : 0;
  const __u32 call_words = linked ? linked->call_count : 0;
  const __u64 bytes = (words + frame_words + call_words) * 8ULL;
  const __u64 waiting = head - *(volatile __u64*)&ring->tail + bytes;

  if (waiting > FLAMED_SAMPLE_RING_BYTES) return -1;
  ring_copy(ring, start, (const flamed_record_word*)record, words, most);
  if (linked) {
    ring_copy(ring, start + words, (const flamed_record_word*)linked->frames, frame_words, sizeof(linked->frames) / 8);
    ring_copy(ring, start + words + frame_words, (const flamed_record_word*)linked->calls, call_words,
              sizeof(linked->calls) / 8);
  }
#ifdef __bpf__
  /*
   * BPF has no instruction for ordering stores that 5.10 supports. x86-64 keeps them in order; elsewhere the daemon
   * does (Sampler::drain()).
   */
  __asm__ volatile("" ::: "memory");
  *(volatile __u64*)&ring->head = head + bytes;
#else
  __atomic_store_n(&ring->head, head + bytes, __ATOMIC_RELEASE);
#endif
  return (long)waiting;
}

#endif /* FLAMED_BPF_SAMPLE_RING_H */
