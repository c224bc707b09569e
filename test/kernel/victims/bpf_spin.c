/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kernel run a BPF program "flamed_spin" again and again: four pages of straight code. Ends with 77 and a
 * reason if the kernel forbids it or would interpret the program, which then has no code of its own.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kInstructions = 4000 };

static int refuse(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 77;
}

int main(void) {
  static struct bpf_insn program[kInstructions + 2];
  /* r0 = 0; r0 *= 3 ...; exit */
  program[0] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0};
  for (int i = 1; i <= kInstructions; i++) {
    program[i] = (struct bpf_insn){.code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = 0, .imm = 3};
  }
  program[kInstructions + 1] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};

  union bpf_attr load;
  memset(&load, 0, sizeof(load));
  load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  load.insns = (unsigned long)program;
  load.insn_cnt = kInstructions + 2;
  load.license = (unsigned long)"GPL";
  strcpy(load.prog_name, "flamed_spin");
  const long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
  if (fd < 0) return refuse("BPF_PROG_LOAD");

  struct bpf_prog_info info;
  memset(&info, 0, sizeof(info));
  union bpf_attr ask;
  memset(&ask, 0, sizeof(ask));
  ask.info.bpf_fd = (unsigned)fd;
  ask.info.info_len = sizeof(info);
  ask.info.info = (unsigned long)&info;
  if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof(ask)) != 0) return refuse("BPF_OBJ_GET_INFO_BY_FD");
  if (info.jited_prog_len == 0) {
    fprintf(stderr, "the program is interpreted: net.core.bpf_jit_enable is 0\n");
    return 77;
  }

  static char packet[64];
  for (;;) {
    union bpf_attr run;
    memset(&run, 0, sizeof(run));
    run.test.prog_fd = (unsigned)fd;
    run.test.data_in = (unsigned long)packet;
    run.test.data_size_in = sizeof(packet);
    run.test.repeat = 10000;
    if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)) != 0) return refuse("BPF_PROG_TEST_RUN");
  }
}
