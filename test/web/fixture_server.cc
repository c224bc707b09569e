// SPDX-License-Identifier: Apache-2.0
//
// The API and the page over a store with fixed content at a fixed time, for tests of the page in a browser.
//
//   fixture_server     listens on a free port of the loopback address, prints "http://127.0.0.1:PORT", runs until
//   SIGTERM
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "api/server.h"
#include "test/unit/api/fake_sources.h"

namespace flamed::api {
namespace {

using Names = std::vector<std::string>;

constexpr ProcessId kCheckout{4242, 90'000};
constexpr ProcessId kHostile{777, 500};
constexpr ProcessId kMirrored{778, 501};
constexpr ProcessId kJava{31'337, 70'000};
constexpr ProcessId kSleepy{600, 400};
constexpr ProcessId kDeep{5150, 80'000};

void add_checkout(FakeSources& sources) {
  const Names request{"_start", "main", "Server::run()", "Server::handle(Request const&)"};
  const auto add = [&](Names below, std::uint64_t count) {
    Names names = request;
    names.insert(names.end(), below.begin(), below.end());
    sources.add_samples(kCheckout, "checkout-api", names, count);
  };
  sources.add_process(kCheckout, "checkout-api");
  add({"Cart::total() const", "price_with_tax(Item const&)"}, 4200);
  add({"Cart::total() const", "price_with_tax(Item const&)", "std::map<std::string, Rate>::find(std::string const&)"},
      2100);
  add({"Cart::total() const"}, 300);
  add({"json::parse(std::string_view)", "json::Parser::object()", "json::Parser::string()"}, 1300);
  add({"json::parse(std::string_view)", "json::Parser::object()"}, 500);
  add({"write", "entry_SYSCALL_64", "ksys_write", "vfs_write", "tcp_sendmsg", "tcp_write_xmit", "__tcp_transmit_skb"},
      900);
  add({"read", "entry_SYSCALL_64", "ksys_read", "vfs_read", "copy_page_to_iter"}, 500);
  add({"clock_gettime", "__vdso_clock_gettime"}, 200);
  add({"[unknown] (libvendor.so+0x1a2b)"}, 250);
  for (int i = 0; i < 40; ++i) add({"Plugin<" + std::to_string(i) + ">::visit(Node const&)"}, 4);
  const std::vector<Frame> cut{{kFirstFreeModule, 3}};
  for (int i = 0; i < 60; ++i) {
    sources.store_.add({{sources.clock_.monotonic().ns - kNsPerSecond},
                        kCheckout,
                        kCheckout.pid,
                        "checkout-api",
                        cut,
                        store::Truncation::kDepthLimit});
  }
}

void add_others(FakeSources& sources) {
  sources.add_process(kJava, "java");
  sources.add_samples(kJava, "java",
                      {"start_thread", "JavaThread::run()", "com.shop.Stock.reserve", "com.shop.Stock.scan"}, 2500);
  sources.add_samples(kJava, "java", {"start_thread", "GCTaskThread::run()"}, 600);

  // Names that would be markup, or would turn their neighbours around, if they were not text.
  sources.add_process(kHostile, "<img onerror=x>");
  sources.add_samples(kHostile, "<img onerror=x>",
                      {"main", "<script>alert(1)</script>", "\"quoted\" & 'more';", "line\nbreak", "bad \xff utf-8"},
                      700);
  sources.add_process(kMirrored, "\u202Egnp.exe");
  sources.add_samples(kMirrored, "\u202Egnp.exe", {"main", "\u202Ereversed\u202C", std::string(10'000, 'x')}, 350);

  sources.add_process(kDeep, "recursive");
  Names recursion{"main"};
  for (int depth = 0; depth < 300; ++depth) recursion.push_back(depth % 2 == 0 ? "even(int)" : "odd(int)");
  sources.add_samples(kDeep, "recursive", recursion, 400);
  sources.add_samples(kDeep, "recursive", {"main", "even(int)"}, 100);

  for (int i = 0; i < 60; ++i) {
    const ProcessId id{9000 + i, 95'000};
    sources.add_process(id, "batch-" + std::to_string(i));
    sources.add_samples(id, "batch-" + std::to_string(i), {"main", "work"}, static_cast<std::uint64_t>(i) + 1);
  }
  sources.add_process(kSleepy, "sleepy");
  sources.store_.add_lost(store::Loss::kRingFull, 12, sources.clock_.monotonic());
}

/// Names are made up by the store's content; what kind of frame each is follows from its name.
void tell_kinds(FakeNamer& namer) {
  for (auto& [offset, frame] : namer.names) {
    const std::string& name = frame.name;
    const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (starts("entry_SYSCALL") || starts("ksys_") || starts("vfs_") || starts("tcp_") || starts("__tcp") ||
        starts("copy_page")) {
      frame.module = "[kernel]";
      frame.kind = store::FrameKind::kKernel;
    } else if (starts("__vdso")) {
      frame.module = "[vdso]";
      frame.kind = store::FrameKind::kVdso;
    } else if (starts("com.shop")) {
      frame.module = "";
      frame.kind = store::FrameKind::kJit;
    } else if (starts("[unknown]")) {
      frame.module = "libvendor.so";
      frame.kind = store::FrameKind::kUnknown;
      frame.reason = "the file has no symbols";
    } else if (starts("write") || starts("read") || starts("clock_") || starts("start_thread")) {
      frame.module = "libc.so.6";
    }
  }
}

int run() {
  // Before the server's threads exist, so that they inherit it and only sigwait() sees the signal.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  FakeSources sources;
  add_checkout(sources);
  add_others(sources);
  tell_kinds(sources.namer_);
  const auto server = Server::listen({"127.0.0.1", 0, 4}, sources);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 1;
  }
  std::printf("http://127.0.0.1:%u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&ends, &signal);
  return 0;
}

}  // namespace
}  // namespace flamed::api

int main() { return flamed::api::run(); }
