/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef FLAMED_BPF_OPAQUE_H
#define FLAMED_BPF_OPAQUE_H

/*
 * Hides from clang where the value comes from. Otherwise it turns a mask's arithmetic into the branch that it avoids,
 * or checks one register and then uses another, which the verifier does not know to be the same.
 */
#define FLAMED_OPAQUE(variable) __asm__ volatile("" : "+r"(variable))

#endif /* FLAMED_BPF_OPAQUE_H */
