/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GCC gives a function that calls nobody no frame, whatever -fno-omit-frame-pointer says, and its caller is then
 * missing from a walk by frame pointers. A call of call_nobody() gives it one.
 */
#ifndef FLAMED_TEST_VICTIM_FRAME_H
#define FLAMED_TEST_VICTIM_FRAME_H

#define NOINLINE __attribute__((noinline, noipa))

NOINLINE static void call_nobody(void) { __asm__ volatile(""); }

#endif
