/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hanging_fuse FOLDER PROGRAM [OTHER]: serves a file system with one file, /program, which has PROGRAM's content, at
 * FOLDER in a mount namespace of its own, and runs the file. It answers only the first open, which runs the file. Any
 * later open hangs until this program ends, and so does a look-up of perf-... or .build-id. Prints the pid of the
 * program that it runs.
 *
 * With OTHER, another folder, the file system is mounted there as well, and PROGRAM runs from its own place.
 *
 * Speaks the kernel's protocol itself (linux/fuse.h): the test needs only seven of its requests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kProgramNode = 2, kForeverSeconds = 1 << 20, kMostWrite = 128 << 10 };

static char request[FUSE_MIN_READ_BUFFER + kMostWrite];
static int device;
static int program;
static struct fuse_attr file;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static void reply(__u64 unique, int error, const void* body, size_t size) {
  struct fuse_out_header head = {(__u32)(sizeof(head) + size), -error, unique};
  struct iovec parts[2] = {{&head, sizeof(head)}, {(void*)body, size}};
  if (writev(device, parts, size ? 2 : 1) < 0 && errno != ENOENT) fail("writev");
}

static struct fuse_attr attributes_of(__u64 node) {
  if (node == kProgramNode) return file;
  struct fuse_attr top = {0};
  top.ino = FUSE_ROOT_ID;
  top.mode = S_IFDIR | 0755;
  top.nlink = 2;
  return top;
}

static void answer_init(const struct fuse_in_header* head, const struct fuse_init_in* in) {
  struct fuse_init_out out = {0};
  out.major = FUSE_KERNEL_VERSION;
  out.minor = FUSE_KERNEL_MINOR_VERSION;
  out.max_readahead = in->max_readahead;
  out.max_write = kMostWrite;
  reply(head->unique, 0, &out, sizeof(out));
}

static void answer_lookup(const struct fuse_in_header* head, const char* name) {
  struct fuse_entry_out out = {0};
  if (strncmp(name, "perf-", 5) == 0 || strcmp(name, ".build-id") == 0) return;
  if (strcmp(name, "program") != 0) {
    reply(head->unique, ENOENT, NULL, 0);
    return;
  }
  out.nodeid = kProgramNode;
  out.entry_valid = out.attr_valid = kForeverSeconds;
  out.attr = file;
  reply(head->unique, 0, &out, sizeof(out));
}

static void answer_read(const struct fuse_in_header* head, const struct fuse_read_in* in) {
  static char bytes[kMostWrite];
  const ssize_t size = pread(program, bytes, in->size < sizeof(bytes) ? in->size : sizeof(bytes), (off_t)in->offset);
  if (size < 0)
    reply(head->unique, errno, NULL, 0);
  else
    reply(head->unique, 0, bytes, (size_t)size);
}

static void serve(void) {
  int opened = 0;
  for (;;) {
    const ssize_t size = read(device, request, sizeof(request));
    if (size < 0 && (errno == EINTR || errno == ENOENT)) continue;
    if (size < (ssize_t)sizeof(struct fuse_in_header)) exit(0);
    const struct fuse_in_header* head = (const struct fuse_in_header*)request;
    const void* body = head + 1;
    switch (head->opcode) {
      case FUSE_INIT:
        answer_init(head, body);
        break;
      case FUSE_LOOKUP:
        answer_lookup(head, body);
        break;
      case FUSE_GETATTR: {
        const struct fuse_attr_out out = {kForeverSeconds, 0, 0, attributes_of(head->nodeid)};
        reply(head->unique, 0, &out, sizeof(out));
        break;
      }
      case FUSE_OPEN: {
        const struct fuse_open_out out = {1, FOPEN_KEEP_CACHE, 0};
        if (opened++ == 0) reply(head->unique, 0, &out, sizeof(out));
        break;
      }
      case FUSE_READ:
        answer_read(head, body);
        break;
      case FUSE_FLUSH:
      case FUSE_RELEASE:
        reply(head->unique, 0, NULL, 0);
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        break;
      default:
        reply(head->unique, ENOSYS, NULL, 0);
    }
  }
}

int main(int argc, char** argv) {
  struct stat status;
  char options[128];
  if (argc != 3 && argc != 4) return 2;
  program = open(argv[2], O_RDONLY | O_CLOEXEC);
  if (program < 0 || fstat(program, &status) != 0) fail(argv[2]);
  file.ino = kProgramNode;
  file.size = (__u64)status.st_size;
  file.mode = S_IFREG | 0755;
  file.nlink = 1;

  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) fail("/dev/fuse");
  if (unshare(CLONE_NEWNS) != 0) fail("unshare");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("mount");
  snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (mount("hanging", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) != 0) fail("mount of fuse");
  if (argc == 4 && mount(argv[1], argv[3], NULL, MS_BIND, NULL) != 0) fail(argv[3]);

  const pid_t server = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    char path[4096];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != server) return 1;
    if (argc == 4)
      snprintf(path, sizeof(path), "%s", argv[2]);
    else
      snprintf(path, sizeof(path), "%s/program", argv[1]);
    execl(path, path, (char*)NULL);
    fail("exec");
  }
  printf("%d\n", child);
  fflush(stdout);
  serve();
}
