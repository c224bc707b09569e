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

/*
 * Returns the number of unread bytes, or -1 if there is no room for the record, of `words` words. `most` is a constant:
 * the words of the largest record of its type.
 */
static __always_inline long ring_put(struct flamed_sample_ring* ring, const void* record, __u32 words,
                                     const __u32 most) {
  const __u64 head = ring->head;
  const __u64 waiting = head - *(volatile __u64*)&ring->tail + words * 8ULL;
  const flamed_record_word* from = (const flamed_record_word*)record;
  const __u32 start = (__u32)(head >> 3);

  if (waiting > FLAMED_SAMPLE_RING_BYTES) return -1;
  for (__u32 i = 0; i < most; i++) {
    if (i >= words) break;
    ring->words[(start + i) & (FLAMED_SAMPLE_RING_WORDS - 1)] = from[i];
  }
#ifdef __bpf__
  /*
   * BPF has no instruction for ordering stores that 5.10 supports. x86-64 keeps them in order; elsewhere the daemon
   * does (Sampler::drain()).
   */
  __asm__ volatile("" ::: "memory");
  *(volatile __u64*)&ring->head = head + words * 8ULL;
#else
  __atomic_store_n(&ring->head, head + words * 8ULL, __ATOMIC_RELEASE);
#endif
  return (long)waiting;
}

#endif /* FLAMED_BPF_SAMPLE_RING_H */
