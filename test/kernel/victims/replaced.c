/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replaced FIRST SECOND: works in the library FIRST, unloads it, mounts SECOND over its path, loads SECOND, prints
 * whether the kernel mapped it at the same place, and waits. Nothing of SECOND ever runs. Has a mount namespace of its
 * own.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

typedef void (*Outer)(unsigned long);

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* first = dlopen(argv[1], RTLD_NOW);
  if (!first) return 1;
  Outer outer;
  *(void**)&outer = dlsym(first, "one_outer");
  if (!outer) return 1;
  const unsigned long place = ((struct link_map*)first)->l_addr;
  while (clock() < CLOCKS_PER_SEC / 3) outer(100000);
  dlclose(first);
  if (mount(argv[2], argv[1], NULL, MS_BIND, NULL) != 0) return 3;
  void* second = dlopen(argv[1], RTLD_NOW);
  if (!second || !dlsym(second, "two_outer")) return 1;
  puts(((struct link_map*)second)->l_addr == place ? "in its place" : "elsewhere");
  fflush(stdout);
  for (;;) pause();
}
