/* SPDX-License-Identifier: Apache-2.0 */
/* Known call chains in code without frame pointers, with a callback at their innermost end. */
#ifndef FLAMED_TEST_KNOWN_CHAIN_H
#define FLAMED_TEST_KNOWN_CHAIN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*known_chain_callback)(void* argument);

/* `depth` calls of itself, each with a frame of another size than its caller's. */
int known_chain_deep(int depth, known_chain_callback callback, void* argument);
/* A frame that is realigned to 64 bytes, with a part of variable size. */
int known_chain_realigned(int size, known_chain_callback callback, void* argument);
/* Calls back from the C library's qsort(). */
int known_chain_qsort(known_chain_callback callback, void* argument);
/* Calls back from a signal handler on a stack of its own. */
int known_chain_signal(known_chain_callback callback, void* argument);
/* Calls back from a new thread. */
int known_chain_thread(known_chain_callback callback, void* argument);

#ifdef __cplusplus
}
#endif

#endif /* FLAMED_TEST_KNOWN_CHAIN_H */
