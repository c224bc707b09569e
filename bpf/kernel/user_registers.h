/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user registers of a sample: program counter, stack pointer and frame pointer of the running thread in user space,
 * even if the timer interrupted the kernel. All code for single architectures is here.
 */
#ifndef FLAMED_BPF_USER_REGISTERS_H
#define FLAMED_BPF_USER_REGISTERS_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel_types.h"
#include "pointer_kinds.h"

/*
 * Is kernel memory read by loads that the verifier checks against BTF, instead of bpf_probe_read_kernel()? Lockdown in
 * confidentiality mode forbids that helper (security_locked_down(LOCKDOWN_BPF_READ_KERNEL) in kernel/trace/bpf_trace.c)
 * but not these loads (5.11, for registers 5.15). Set before loading.
 */
const volatile __u32 read_by_type = 0;

struct user_registers {
  __u64 pc;
  __u64 sp;
  __u64 fp;
  __u64 lr; /* arm64; 0 elsewhere */
  __u32 is_32bit;
};

#if defined(__TARGET_ARCH_x86)

/* USER32_CS: the code segment of a 32-bit process (arch/x86/include/asm/segment.h). */
#define FLAMED_USER32_CS 0x23

/* The kernel's struct pt_regs for x86-64; uapi, so it never changes. */
typedef struct pt_regs flamed_registers;

static __always_inline int registers_are_user(const flamed_registers* regs) { return (regs->cs & 3) == 3; }

static __always_inline void registers_read(const flamed_registers* regs, struct user_registers* out) {
  out->pc = regs->rip;
  out->sp = regs->rsp;
  out->fp = regs->rbp;
  out->lr = 0;
  out->is_32bit = regs->cs == FLAMED_USER32_CS;
}

/* DWARF's numbers: x86-64 psABI, table 3.36. */
static __always_inline void registers_by_number(const flamed_registers* regs, __u64* out) {
  out[0] = regs->rax;
  out[1] = regs->rdx;
  out[2] = regs->rcx;
  out[3] = regs->rbx;
  out[4] = regs->rsi;
  out[5] = regs->rdi;
  out[6] = regs->rbp;
  out[7] = regs->rsp;
  out[8] = regs->r8;
  out[9] = regs->r9;
  out[10] = regs->r10;
  out[11] = regs->r11;
  out[12] = regs->r12;
  out[13] = regs->r13;
  out[14] = regs->r14;
  out[15] = regs->r15;
  out[16] = regs->rip;
}

/* From the result of bpf_task_pt_regs(). */
static __always_inline int is_32bit(const flamed_registers* regs) {
  return *(const volatile __u16*)&regs->cs == FLAMED_USER32_CS;
}

/* From the result of bpf_task_pt_regs(), each field with its own load. For the verifier, cs has 16 bits since 6.9. */
static __always_inline void registers_copy(const flamed_registers* from, flamed_registers* to) {
  to->r15 = from->r15;
  to->r14 = from->r14;
  to->r13 = from->r13;
  to->r12 = from->r12;
  to->rbp = from->rbp;
  to->rbx = from->rbx;
  to->r11 = from->r11;
  to->r10 = from->r10;
  to->r9 = from->r9;
  to->r8 = from->r8;
  to->rax = from->rax;
  to->rcx = from->rcx;
  to->rdx = from->rdx;
  to->rsi = from->rsi;
  to->rdi = from->rdi;
  to->rip = from->rip;
  to->cs = *(const volatile __u16*)&from->cs;
  to->rsp = from->rsp;
}

/* As in task_pt_regs(): they are at the very top of the kernel stack, 16 KiB without KASAN (THREAD_SIZE). */
#define FLAMED_THREAD_SIZE (16 * 1024)
#define FLAMED_STACK_TOP_PADDING 0

#elif defined(__TARGET_ARCH_arm64)

typedef struct user_pt_regs flamed_registers;

/* PSR_MODE_MASK == PSR_MODE_EL0t, PSR_MODE32_BIT (arch/arm64/include/uapi/asm/ptrace.h). */
static __always_inline int registers_are_user(const flamed_registers* regs) { return (regs->pstate & 0xf) == 0; }

/*
 * Each field with its own load. From the loads of a choice clang makes one load at a chosen offset, which the verifier
 * refuses where the registers are in the program's context.
 */
static __always_inline void registers_read(const flamed_registers* from, struct user_registers* out) {
  const volatile flamed_registers* regs = from;
  const __u64 sp = regs->sp, fp = regs->regs[29];
  const __u64 sp_of_32bit = regs->regs[13], fp_of_32bit = regs->regs[11];
  out->is_32bit = (regs->pstate & 0x10) != 0;
  out->pc = regs->pc;
  out->sp = out->is_32bit ? sp_of_32bit : sp;
  out->fp = out->is_32bit ? fp_of_32bit : fp;
  out->lr = regs->regs[30];
}

static __always_inline void registers_by_number(const flamed_registers* regs, __u64* out) {
#pragma unroll
  for (int i = 0; i < 31; i++) out[i] = regs->regs[i];
  out[31] = regs->sp;
  out[32] = regs->pc;
}

static __always_inline int is_32bit(const flamed_registers* regs) { return (regs->pstate & 0x10) != 0; }

static __always_inline void registers_copy(const flamed_registers* from, flamed_registers* to) {
#pragma unroll
  for (int i = 0; i < 31; i++) to->regs[i] = from->regs[i];
  to->sp = from->sp;
  to->pc = from->pc;
  to->pstate = from->pstate;
}

/* arm64 keeps more than user_pt_regs there and its stack size varies: only the helper can be used. */
#define FLAMED_THREAD_SIZE 0
#define FLAMED_STACK_TOP_PADDING 0

#else
#error "add this architecture's registers here"
#endif

/*
 * Returns 0 and fills `out` and `by_number`, all registers by their DWARF number, or returns -1 if the kernel does not
 * show them. `task` has user space.
 */
static __always_inline int read_user_registers(struct bpf_perf_event_data* ctx, struct task_struct* task,
                                               struct user_registers* out, __u64* by_number) {
  flamed_registers regs;

  if (registers_are_user(&ctx->regs)) {
    registers_read(&ctx->regs, out);
    registers_by_number(&ctx->regs, by_number);
    end_of_reads();
    return 0;
  }
  if (bpf_core_enum_value_exists(enum bpf_func_id___with_task_pt_regs, BPF_FUNC_task_pt_regs___with_task_pt_regs)) {
    struct task_struct* current_task = (struct task_struct*)bpf_get_current_task_btf();
    if (read_by_type) {
      registers_copy((const flamed_registers*)bpf_task_pt_regs(current_task), &regs);
      end_of_reads();
    } else if (bpf_probe_read_kernel(&regs, sizeof(regs), (void*)bpf_task_pt_regs(current_task))) {
      return -1;
    }
  } else {
    if (read_by_type) return -1;
    if (!FLAMED_THREAD_SIZE) return -1;
    void* stack = BPF_CORE_READ(task, stack);
    if (bpf_probe_read_kernel(&regs, sizeof(regs),
                              stack + FLAMED_THREAD_SIZE - FLAMED_STACK_TOP_PADDING - sizeof(regs)))
      return -1;
  }
  registers_read(&regs, out);
  registers_by_number(&regs, by_number);
  return 0;
}

#endif /* FLAMED_BPF_USER_REGISTERS_H */
