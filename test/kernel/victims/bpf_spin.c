/* SPDX-License-Identifier: Apache-2.0 */
/* Has the kernel run a BPF program called "flamed_spin" over and over. Ends with 77 where the kernel forbids it. */
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kInstructions = 4000 };

int main(void) {
  static struct bpf_insn program[kInstructions + 2];
  /* r0 = 0; r0 += 1 ...; exit */
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
  if (fd < 0) return 77;

  static char packet[64];
  for (;;) {
    union bpf_attr run;
    memset(&run, 0, sizeof(run));
    run.test.prog_fd = (unsigned)fd;
    run.test.data_in = (unsigned long)packet;
    run.test.data_size_in = sizeof(packet);
    run.test.repeat = 10000;
    if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)) != 0) return 77;
  }
}
