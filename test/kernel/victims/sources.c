/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works in functions whose line table names other files: in a folder whose name the test writes over, with as many
 * bytes, and /etc/shadow.
 */
static volatile unsigned long sum;

enum { kRounds = 300000 };

#line 10 "/flamed-place-of-sources----------------------------------------/plain.c"
__attribute__((noinline)) static void plain(void) {
  for (int i = 0; i < kRounds; ++i) {
    sum += (unsigned long)i;
    sum *= 3;
  }
}

#line 10 "/flamed-place-of-sources----------------------------------------/pipe.c"
__attribute__((noinline)) static void pipe_file(void) {
  for (int i = 0; i < kRounds; ++i) {
    sum += (unsigned long)i;
  }
}

#line 10 "/flamed-place-of-sources----------------------------------------/fuse/program"
__attribute__((noinline)) static void fuse_file(void) {
  for (int i = 0; i < kRounds; ++i) {
    sum += (unsigned long)i;
  }
}

#line 1 "/etc/shadow"
__attribute__((noinline)) static void shadow(void) {
  for (int i = 0; i < kRounds; ++i) {
    sum += (unsigned long)i;
  }
}

#line 1 "sources.c"
int main(void) {
  for (;;) {
    plain();
    pipe_file();
    fuse_file();
    shadow();
  }
}
