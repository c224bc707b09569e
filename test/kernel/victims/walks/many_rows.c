/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code with many unwind rows for its size: 20,000 functions with three rows each, within the tables' limit per page
 * (FLAMED_MAX_PAGE_ROWS). Never called.
 */
#if defined(__x86_64__)
#define PUSH "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
#define POP "pop %rbx\n.cfi_def_cfa_offset 8\n"
#elif defined(__aarch64__)
#define PUSH "str x19, [sp, -16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x19, -16\n"
#define POP "ldr x19, [sp], 16\n.cfi_def_cfa_offset 0\n"
#endif

__asm__(".text\n.rept 20000\n.cfi_startproc\nnop\n" PUSH "nop\n" POP "ret\n.skip 16, 0\n.cfi_endproc\n.endr\n");
