/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forbidden ERRNO NAME... -- PROGRAM ARGUMENT...: runs the program under a seccomp filter that fails the system calls
 * NAME (bpf, perf_event_open) with ERRNO, like filters of containers.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct sock_filter filter[16];
  unsigned short count = 0;
  int i = 2;
  if (argc < 5) return 2;
  const unsigned error = (unsigned)atoi(argv[1]);
  filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (; i < argc && strcmp(argv[i], "--") != 0 && count < 12; i++) {
    const unsigned number = strcmp(argv[i], "bpf") == 0 ? SYS_bpf : SYS_perf_event_open;
    filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
  }
  filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  if (i + 1 >= argc) return 2;
  struct sock_fprog rules = {count, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &rules) != 0) {
    perror("seccomp");
    return 1;
  }
  execv(argv[i + 1], argv + i + 1);
  perror(argv[i + 1]);
  return 1;
}
