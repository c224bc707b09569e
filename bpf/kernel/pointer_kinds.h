/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps reads through different kinds of pointers apart.
 *
 * For the verifier a pointer to the context, to a kernel object (bpf_get_current_task_btf()) and to the program's own
 * memory are of different kinds, and one instruction may read only through one kind: "same insn cannot be used with
 * different pointers" (save_aux_ptr_type() in kernel/bpf/verifier.c). A compiler does not know that. If two branches
 * end with the same reads, it may choose the pointer in the branches and read once after them, as clang 19 does.
 *
 * So every branch that reads through the context or a kernel object, while another branch reads the same fields in
 * another way, ends with end_of_reads(). No read moves across it, and LLVM never merges two pieces of inline assembly.
 */
#ifndef FLAMED_BPF_POINTER_KINDS_H
#define FLAMED_BPF_POINTER_KINDS_H

#define end_of_reads() asm volatile("" ::: "memory")

#endif /* FLAMED_BPF_POINTER_KINDS_H */
