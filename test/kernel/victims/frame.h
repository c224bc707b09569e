/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GCC gives a leaf function no frame, despite -fno-omit-frame-pointer, and then its caller is missing from a walk by
 * frame pointers. A call of call_nobody() gives it a frame.
 */
#ifndef FLAMED_TEST_VICTIM_FRAME_H
#define FLAMED_TEST_VICTIM_FRAME_H

#define NOINLINE __attribute__((noinline, noipa))

NOINLINE static void call_nobody(void) { __asm__ volatile(""); }

#endif
