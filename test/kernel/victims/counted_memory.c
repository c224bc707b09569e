/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted_memory BYTES -- PROGRAM ARGUMENT...: runs the program as under a kernel before 5.11, which counts BPF maps as
 * locked memory. BYTES are allowed: creating a larger map fails with EPERM.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long long map_bytes(const union bpf_attr* attr) {
  if (attr->map_type == BPF_MAP_TYPE_RINGBUF) return attr->max_entries;
  return (unsigned long long)attr->max_entries * (attr->key_size + attr->value_size);
}

/* Answers each bpf() of the program. */
static void keep_count(int listener, unsigned long long most_bytes) {
  struct seccomp_notif call;
  for (;;) {
    memset(&call, 0, sizeof(call));
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
      if (errno == EINTR) continue;
      return;
    }
    struct seccomp_notif_resp answer = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (call.data.args[0] == BPF_MAP_CREATE) {
      union bpf_attr attr;
      char path[32];
      memset(&attr, 0, sizeof(attr));
      snprintf(path, sizeof(path), "/proc/%u/mem", call.pid);
      const int memory = open(path, O_RDONLY | O_CLOEXEC);
      const size_t size = call.data.args[2] < sizeof(attr) ? (size_t)call.data.args[2] : sizeof(attr);
      const ssize_t got = pread(memory, &attr, size, (off_t)call.data.args[1]);
      close(memory);
      if (got < 0 || map_bytes(&attr) > most_bytes) {
        answer.flags = 0;
        answer.error = -EPERM;
      }
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

int main(int argc, char** argv) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog rules = {sizeof(filter) / sizeof(filter[0]), filter};
  if (argc < 4 || strcmp(argv[2], "--") != 0) return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  const int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &rules);
  if (listener < 0) {
    perror("seccomp");
    return 1;
  }
  const pid_t keeper = fork();
  if (keeper < 0) return 1;
  if (keeper == 0) {
    /* Under the same filter, which therefore does not end with the program. A reader of the program's output waits
     * only for the program's end. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(1);
    close(2);
    keep_count(listener, strtoull(argv[1], NULL, 10));
    _exit(0);
  }
  close(listener);
  execv(argv[3], argv + 3);
  perror(argv[3]);
  return 1;
}
