/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service, until it is ended. What its threads do in each second of the wall clock, in milliseconds:
 *
 *   worker      0 to 400 price_with_tax(), a fifth of it in find_rate(); 500 to 650 parse_json(); 850 to 980
 *               send_answers(), over a TCP connection to itself. From SIGUSR1 on, 700 to 800 audit()
 *   reporter    400 to 550 make_report()
 *   holder      holds a lock nearly all the time
 *   session-1   wants the lock, as does session-2, in lock_session()
 *   journal     commit(): writes 8 MiB past the page cache to a file of the current folder, and fsync
 *   checkout    the main thread, 980 to 1000 look_around()
 *
 * Otherwise they wait for work, which never comes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { kRounds = 20000, kAnswerBytes = 16384, kJournalBytes = 8 << 20 };

static volatile unsigned long total;
static volatile sig_atomic_t signalled;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2]; /* of the connection */
static int journal_file;

static void on_signal(int number) {
  (void)number;
  signalled = 1;
}

/* Each loop is one line, for tests that ask for it. */
NOINLINE static void find_rate(void) {
  for (unsigned long i = 0; i < kRounds; i++) total += i;
}

NOINLINE static void price_with_tax(void) {
  for (unsigned long i = 0; i < 4 * kRounds; i++) total += i; /* the hot line */
  find_rate();                                                /* the line of the search */
  total = 0;
}

NOINLINE static void parse_json(void) {
  for (unsigned long i = 0; i < kRounds; i++) total += i;
}

NOINLINE static void audit(void) {
  for (unsigned long i = 0; i < kRounds; i++) total += i;
}

NOINLINE static void make_report(void) {
  for (unsigned long i = 0; i < kRounds; i++) total += i;
}

NOINLINE static void look_around(void) {
  for (unsigned long i = 0; i < kRounds; i++) total += i;
}

NOINLINE static void send_answers(void) {
  static char answer[kAnswerBytes];
  if (write(ends[0], answer, sizeof(answer)) != sizeof(answer)) exit(1);
  for (ssize_t got = 0; got < kAnswerBytes;) {
    const ssize_t more = read(ends[1], answer, sizeof(answer));
    if (more <= 0) exit(1);
    got += more;
  }
}

NOINLINE static void lock_session(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

NOINLINE static void commit(void) {
  static _Alignas(4096) char entries[kJournalBytes];
  if (pwrite(journal_file, entries, sizeof(entries), 0) != sizeof(entries) || fsync(journal_file)) exit(1);
}

static int ms_of_second(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int)(now.tv_nsec / 1000000);
}

static int is_between(int from_ms, int to_ms) {
  const int now = ms_of_second();
  return from_ms <= now && now < to_ms;
}

static void wait_for_work(int ms) { poll(NULL, 0, ms); }

static void hold_for(long ms) {
  const struct timespec time = {0, ms * 1000000};
  nanosleep(&time, NULL);
}

static void* work(void* unused) {
  prctl(PR_SET_NAME, "worker");
  for (;;) {
    if (is_between(0, 400)) {
      price_with_tax();
    } else if (is_between(500, 650)) {
      parse_json();
    } else if (signalled && is_between(700, 800)) {
      audit();
    } else if (is_between(850, 980)) {
      send_answers();
    } else {
      wait_for_work(2);
    }
  }
  return unused;
}

static void* report(void* unused) {
  prctl(PR_SET_NAME, "reporter");
  for (;;) {
    if (is_between(400, 550)) {
      make_report();
    } else {
      wait_for_work(2);
    }
  }
  return unused;
}

static void* hold(void* unused) {
  prctl(PR_SET_NAME, "holder");
  for (;;) {
    pthread_mutex_lock(&mutex);
    hold_for(500);
    pthread_mutex_unlock(&mutex);
    wait_for_work(2);
  }
  return unused;
}

static void* serve_session(void* name) {
  prctl(PR_SET_NAME, name);
  for (;;) {
    lock_session();
    wait_for_work(1);
  }
  return NULL;
}

static void* keep_journal(void* unused) {
  prctl(PR_SET_NAME, "journal");
  for (;;) {
    commit();
    wait_for_work(30);
  }
  return unused;
}

static void connect_to_itself(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, size) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr*)&address, &size) || connect(ends[0], (struct sockaddr*)&address, size)) {
    exit(1);
  }
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
}

int main(void) {
  char name[] = "journal.XXXXXX";
  journal_file = mkstemp(name);
  if (journal_file < 0) return 1;
  unlink(name);
  fcntl(journal_file, F_SETFL, O_DIRECT); /* where the file system can */
  connect_to_itself();
  signal(SIGUSR1, on_signal);
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_create(&thread, NULL, report, NULL);
  pthread_create(&thread, NULL, hold, NULL);
  pthread_create(&thread, NULL, serve_session, "session-1");
  pthread_create(&thread, NULL, serve_session, "session-2");
  pthread_create(&thread, NULL, keep_journal, NULL);
  for (;;) {
    if (is_between(980, 1000)) {
      look_around();
    } else {
      wait_for_work(2);
    }
  }
}
