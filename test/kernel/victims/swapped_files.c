/* SPDX-License-Identifier: Apache-2.0 */
/* swapped_files FOLDER FIRST SECOND OFFSET MS: in a mount namespace of its own, with a file system that only it sees on
 * FOLDER, maps a copy of FIRST and calls what stands at OFFSET for MS of CPU time; then binds SECOND over the copy,
 * maps that at the same address, and does the same. Says "ready", waits until FOLDER.wait is gone, and says "swapped"
 * when it is done. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 65536 };

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

static int copy(const char* from, const char* to) {
  struct stat status;
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  const int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  const int copied = in >= 0 && out >= 0 && fstat(in, &status) == 0 &&
                     sendfile(out, in, NULL, (size_t)status.st_size) == status.st_size;
  close(in);
  close(out);
  return copied;
}

static int run(const char* path, void* place, unsigned long offset, double ms) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char* const code = mmap(place, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
  close(file);
  if (code == MAP_FAILED) return 0;
  void* const at = code + offset;
  unsigned long (*spin)(unsigned long);
  memcpy(&spin, &at, sizeof(spin));
  for (const double end = cpu_ms() + ms; cpu_ms() < end;) spin(1000000);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  char path[4096];
  char mark[4096];
  snprintf(path, sizeof(path), "%s/code", argv[1]);
  const unsigned long offset = strtoul(argv[4], NULL, 16);
  const double ms = atof(argv[5]);
  void* const place = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED || unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    return 3;
  if (mount("tmpfs", argv[1], "tmpfs", 0, NULL) != 0 || !copy(argv[2], path)) return 4;
  puts("ready");
  fflush(stdout);
  snprintf(mark, sizeof(mark), "%s.wait", argv[1]);
  while (access(mark, F_OK) == 0) usleep(10000);
  if (!run(path, place, offset, ms)) return 5;
  if (mount(argv[3], path, NULL, MS_BIND, NULL) != 0) return 6;
  if (!run(path, place, offset, ms)) return 7;
  puts("swapped");
  fflush(stdout);
  pause();
}
