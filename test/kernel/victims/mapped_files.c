/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_files LIST: maps every file named in LIST as code, says how many, and works a little for ever. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile unsigned long sink;

int main(int argc, char** argv) {
  FILE* list = argc > 1 ? fopen(argv[1], "r") : NULL;
  char path[4096];
  int mapped = 0;
  if (!list) return 2;
  while (fgets(path, sizeof(path), list)) {
    path[strcspn(path, "\n")] = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0) continue;
    if (fstat(file, &status) == 0 && status.st_size > 0 &&
        mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED)
      mapped++;
    close(file);
  }
  fclose(list);
  printf("%d\n", mapped);
  fflush(stdout);
  for (;;) {
    for (unsigned long i = 0; i < 20000000; i++) sink += i;
    usleep(50000);
  }
}
