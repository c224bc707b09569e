// SPDX-License-Identifier: Apache-2.0
//
// Stacks of programs without frame pointers, frame by frame.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/binomial_tolerance.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

/// Frames of the stack from the first `from` on; empty when it is not there.
std::string tail_from(const std::string& stack, const std::string& from) {
  const std::size_t at = (";" + stack).find(";" + from + ";");
  return at == std::string::npos ? "" : stack.substr(at);
}

bool is_whole(const std::string& stack) { return stack.rfind("[truncated", 0) != 0; }

/// Stacks that `wanted` rejects, most samples first, for a message.
std::string others(const FoldedStacks& stacks, const std::function<bool(const std::string&)>& wanted) {
  constexpr std::size_t kShown = 24;
  std::vector<std::pair<std::uint64_t, std::string>> found;
  for (const auto& [stack, count] : stacks) {
    if (!wanted(stack)) found.emplace_back(count, stack);
  }
  std::sort(found.rbegin(), found.rend());
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, found.size()); ++i) {
    text += "\n  " + std::to_string(found[i].first) + "  " + found[i].second;
  }
  return text;
}

std::string listed(const FoldedStacks& stacks) {
  return others(stacks, [](const std::string&) { return false; });
}

#if defined(__aarch64__)
constexpr const char* kInterrupt = ";el0t_64_irq";
/// The vdso has no unwind information there, so the caller of its leaf function is missing.
constexpr const char* kVdsoClock = ";main;ask_time;__kernel_clock_gettime;";
/// libgcc's uw_install_context_1() writes the handler's registers, the return address among them, over those that its
/// caller has saved there. It was in 5 of some 300 stacks.
constexpr double kWholeThrows = 0.97;
#else
constexpr const char* kInterrupt = ";asm_";
constexpr const char* kVdsoClock = ";main;ask_time;clock_gettime;__vdso_clock_gettime;";
constexpr double kWholeThrows = 0.99;
#endif

struct Chain {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> expected;  ///< stacks from main on; a sample has one of them
  /// This share of all samples must be one of these or on the way there or back; a tenth less must be one of these.
  double share;
};

TEST_CASE("every chain through code without frame pointers is shown frame by frame") {
  const Chain chain = GENERATE_COPY(
      Chain{"60 frames", {"recursion", "60"}, {"main;" + repeated("descend", 61) + ";work"}, 0.95},
      Chain{"120 frames", {"recursion", "119"}, {"main;" + repeated("descend", 120) + ";work"}, 0.95},
      Chain{"frames of variable size and with alignment", {"frames"}, {"main;aligned_frame;variable_frame;work"}, 0.95},
      Chain{"there and back through a shared library",
            {"library"},
            {"main;library_calls_back;library_inner;callback;" + repeated("descend", 4) + ";work"},
            0.95},
      Chain{"called back by qsort", {"qsort"}, {}, 0},
      Chain{"in and on the way through PLT stubs",
            {"plt"},
            {"main;library_does_nothing", "main;library_does_nothing@plt", "main"},
            0.95});
  INFO(chain.name);
  const RunningDaemon& daemon = frequent_daemon();
  std::vector<std::string> command{victim("chains")};
  command.insert(command.end(), chain.arguments.begin(), chain.arguments.end());
  ChildProcess program(command);
  // The kernel's interrupt code may be on top; it belongs to no chain.
  const auto without_interrupt = [](const std::string& stack) {
    const std::string tail = tail_from(stack + ";", "main");
    const std::size_t interrupt = tail.find(kInterrupt);
    return interrupt == std::string::npos ? tail : tail.substr(0, interrupt + 1);
  };
  const auto is_first = [&](const std::string& stack) {
    const std::string tail = without_interrupt(stack);
    if (!chain.expected.empty()) return tail == chain.expected[0] + ";";
    // The sort itself is libc's; its functions are not in the dynamic symbol table.
    return tail.rfind("main;sort;qsort_r;", 0) == 0 && tail.ends_with(";compare;");
  };
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_first, 300);
  const auto n = static_cast<double>(total(stacks));
  {
    INFO("stacks that are not whole:" << others(stacks, is_whole));
    CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.99 * n);
  }
  if (chain.expected.empty()) {
    INFO("stacks that are not exact:" << others(stacks, is_first));
    CHECK(static_cast<double>(count_if(stacks, is_first)) >= 0.9 * n);
    return;
  }
  const auto is_complete = [&](const std::string& stack) {
    return std::any_of(chain.expected.begin(), chain.expected.end(),
                       [&](const std::string& expected) { return without_interrupt(stack) == expected + ";"; });
  };
  // A program that goes down 120 calls and back again spends 3.4 % of its time on the way.
  const auto is_on_the_way = [&](const std::string& stack) {
    const std::string tail = without_interrupt(stack);
    return !tail.empty() && std::any_of(chain.expected.begin(), chain.expected.end(), [&](const std::string& expected) {
      return (expected + ";").rfind(tail, 0) == 0;
    });
  };
  INFO("stacks that are no part of the chain:" << others(stacks, is_on_the_way));
  CHECK(static_cast<double>(count_if(stacks, is_on_the_way)) >= chain.share * n);
  CHECK(static_cast<double>(count_if(stacks, is_complete)) >= (chain.share - 0.1) * n);
}

TEST_CASE("a stack through a signal handler goes on in the code that was interrupted") {
  const bool own_stack = GENERATE(false, true);
  INFO((own_stack ? "on a stack of its own" : "on the thread's stack"));
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("chains"), "signal", own_stack ? "1" : "0"});
  // Between handler and interrupted code is libc's trampoline, to which the handler returns.
  const auto is_exact = [](const std::string& stack) {
    const std::string tail = tail_from(stack, "main");
    return tail.rfind("main;signals;interrupted;", 0) == 0 && tail.find(";handler;in_handler") != std::string::npos;
  };
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_exact, 300);
  INFO("stacks:" << listed(stacks));
  const std::uint64_t in_handler = with(stacks, ";in_handler;");
  CHECK(in_handler >= 10);
  const std::uint64_t exact = count_if(stacks, is_exact);
  CHECK(static_cast<double>(exact) >= 0.98 * static_cast<double>(in_handler));
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.98 * static_cast<double>(total(stacks)));
}

TEST_CASE("stacks through code whose CFA is in another register than sp and fp are whole") {
  if (!std::filesystem::exists(victim("realigned"))) {
    WARN("SKIP x86-64: the victim has instructions of its own");
    return;
  }
  struct Code {
    std::string how;
    std::string chain;  // from main on
  };
  const Code code = GENERATE(values<Code>({{"binding", "main;bind_lazily;"},
                                           {"vectors", "main;use_vectors;"},
                                           {"prologue", "main;stay_in_prologue;spin_in_prologue;"}}));
  const bool is_interrupted = GENERATE(false, true);
  INFO(code.how << (is_interrupted ? ", interrupted by a signal" : ""));
  const RunningDaemon& daemon = frequent_daemon();
  std::vector<std::string> command{victim("realigned"), code.how};
  if (is_interrupted) command.emplace_back("interrupted");
  ChildProcess program(command);
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) {
    WARN("SKIP the CPU has no AVX2");
    return;
  }
#endif
  const auto is_in_chain = [&](const std::string& stack) {
    return is_whole(stack) && tail_from(stack + ";", "main").rfind(code.chain, 0) == 0;
  };
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_in_chain, 500);
  INFO("stacks:" << listed(stacks));
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_in_chain)) >= 0.95 * n);
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.99 * n);
  CHECK(static_cast<double>(with(stacks, "[truncated: unwinding needs a register")) <= 0.001 * n);
  if (is_interrupted) CHECK(with(stacks, ";handler;in_handler;") >= 20);
}

TEST_CASE("signed return addresses lose their signatures, and a leaf function returns by the link register") {
  if (!std::filesystem::exists(victim("signed"))) {
    WARN("SKIP arm64: other machines do not sign return addresses");
    return;
  }
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("signed")});
  const std::optional<std::string> answer = program.read_line(seconds(60));
  REQUIRE(answer);
  if (*answer != "signed") {
    WARN("SKIP pointer-authentication: the CPU has none");
    return;
  }
  const auto is_exact = [](const std::string& stack) {
    return is_whole(stack) && tail_from(stack + ";", "main").rfind("main;outer;middle;leaf;", 0) == 0;
  };
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_exact, 300);
  INFO("stacks:" << listed(stacks));
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_exact)) >= 0.95 * n);
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.99 * n);
}

TEST_CASE("a thread's stack ends at the thread's start") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("chains"), "thread"});
  const auto is_exact = [](const std::string& stack) {
    // clone3 and start_thread, which libc's dynamic symbols do not name.
    const std::size_t at = stack.find(";thread_start;thread_work;work");
    return is_whole(stack) && at != std::string::npos &&
           std::count(stack.begin(), stack.begin() + static_cast<long>(at), ';') == 1;
  };
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_exact, 200);
  INFO("stacks:" << listed(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_exact)) >= 0.95 * static_cast<double>(total(stacks)));
}

TEST_CASE("stacks from inside the vdso and system calls are whole") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess clock({victim("chains"), "vdso"});
  ChildProcess calls({victim("chains"), "syscall"});
  const std::string of_clock = kVdsoClock;
  const FoldedStacks in_vdso = profile_once_seen(daemon, clock.pid(), of_clock, 200);
  INFO("stacks:" << listed(in_vdso));
  CHECK(static_cast<double>(with(in_vdso, ";main;ask_time;")) >= 0.97 * static_cast<double>(total(in_vdso)));
  CHECK(with(in_vdso, of_clock) > total(in_vdso) / 2);
  CHECK(static_cast<double>(count_if(in_vdso, is_whole)) >= 0.99 * static_cast<double>(total(in_vdso)));

  const std::string of_call = std::string(";main;enter_kernel;syscall;") + kSystemCall + ";" + kSystemCallCallee + ";";
  const FoldedStacks in_calls = profile_once_seen(daemon, calls.pid(), of_call, 200);
  INFO("stacks:" << listed(in_calls));
  CHECK(with(in_calls, of_call) > total(in_calls) / 4);
  CHECK(static_cast<double>(count_if(in_calls, is_whole)) >= 0.99 * static_cast<double>(total(in_calls)));
}

TEST_CASE("stacks are whole while a C++ exception is thrown and where it is caught") {
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("exceptions")});
  // Its libraries are published to the kernel program one after another.
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), ";__cxa_throw;", 300);
  INFO("stacks:" << listed(stacks));
  // The compiler puts a catch block's calls into the cold part of the function.
  const std::uint64_t landed = with(stacks, ";(anonymous namespace)::landed;(anonymous namespace)::spin;");
  CHECK(landed > total(stacks) / 20);
  CHECK(with(stacks, ";__cxa_throw;") > 0);
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= kWholeThrows * static_cast<double>(total(stacks)));
}

/// `is_own`: a stack of the program, and not of a thread of its language's runtime.
void check_language(const std::string& name, const std::string& chain,
                    const std::function<bool(const std::string&)>& is_own) {
  if (!has_victim(name)) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), chain, 200);
  INFO("stacks:" << listed(stacks));
  const std::uint64_t own = count_if(stacks, is_own);
  CHECK(own > total(stacks) / 2);
  CHECK(static_cast<double>(with(stacks, chain)) >= 0.95 * static_cast<double>(own));
  const auto is_own_and_whole = [&](const std::string& stack) { return is_own(stack) && is_whole(stack); };
  CHECK(static_cast<double>(count_if(stacks, is_own_and_whole)) >= 0.98 * static_cast<double>(own));
}

/// Go's scheduler runs on stacks of its own. At their ends the runtime leaves addresses that called nothing, some of
/// which look like callers. Such stacks were at most 14 of 19,787 samples on a host, and 7 of 392 in an emulated
/// machine.
bool is_goroutine(const std::string& stack) {
  const std::vector<std::string> starts{";runtime.mstart;", ";runtime.mcall;", ";runtime.morestack;"};
  return std::none_of(starts.begin(), starts.end(),
                      [&](const std::string& start) { return (";" + stack + ";").find(start) != std::string::npos; });
}

TEST_CASE("a Rust program's chain is shown frame by frame") {
  const std::string name = GENERATE(from_range(builds_of("rust")));
  INFO(name);
  check_language(name, "chain::main;chain::outer;chain::middle;chain::work;", [](const std::string&) { return true; });
}

TEST_CASE("a Go program's chain is shown frame by frame") {
  const std::string name = GENERATE(from_range(builds_of("go")));
  INFO(name);
  check_language(name, ";runtime.main;main.main;main.outer;main.middle;main.work;", is_goroutine);
}

TEST_CASE("a stack through a Go program's signal handler goes on in the goroutine that was interrupted") {
  struct Program {
    std::string name;
    std::string handler;
    double whole;  // stacks, as a share of the samples
  };
  // Without .debug_frame there are frame pointers, which a function has not set up yet in its first instructions. An
  // emulated CPU takes interrupts only between blocks of code, so more often there: 0.95 were whole, and 0.99
  // elsewhere.
  const Program run =
      GENERATE(values<Program>({{"go_signals", ";runtime.sigtramp;", 0.98},
                                {"go_signals_stripped", ";runtime.sigtramp;runtime.sigtrampgo;", 0.95}}));
  const std::string name = GENERATE_COPY(from_range(builds_of(run.name)));
  INFO(name);
  if (!has_victim(name)) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  FoldedStacks stacks =
      profile_once_seen(daemon, program.pid(), ";runtime.main;main.main;main.outer;main.interrupted;", 500);
  // The runtime preempts its own threads by the same signal.
  std::erase_if(stacks, [](const auto& stack) { return !is_goroutine(stack.first); });
  INFO("stacks:" << listed(stacks));

  const std::uint64_t in_handler = with(stacks, run.handler);
  CHECK(in_handler >= 5);
  const auto exact = count_if(stacks, [&](const std::string& stack) {
    const std::string tail = tail_from(stack, "runtime.main");
    // The function to which the handler returns has the first name in Go 1.19 and the second in 1.26.
    return tail.rfind("runtime.main;main.main;main.outer;main.interrupted;", 0) == 0 &&
           ((tail + ";").find(";runtime.sigreturn" + run.handler) != std::string::npos ||
            (tail + ";").find(";runtime.sigreturn__sigaction" + run.handler) != std::string::npos);
  });
  // The runtime preempts this thread anywhere.
  CHECK(static_cast<double>(exact) >= 0.8 * static_cast<double>(in_handler));
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= run.whole * n - binomial_tolerance(n, run.whole));
}

/// In the vdso, which runs on another one of Go's stacks, and whose rows are the last to be built.
bool is_in_vdso(const std::string& stack) {
  return stack.find(";main.clock;time.Now;") != std::string::npos && stack.find("clock_gettime") != std::string::npos;
}

/// The chains that stacks.go prints, by their innermost function.
std::map<std::string, std::string> printed_chains(ChildProcess& program) {
  std::map<std::string, std::string> chains;
  constexpr std::size_t kChains = 4;
  while (chains.size() < kChains) {
    const std::optional<std::string> line = program.read_line(seconds(20) * patience());
    REQUIRE(line);
    REQUIRE(line->rfind("chain ", 0) == 0);
    const std::string chain = line->substr(std::string("chain ").size());
    chains[chain.substr(chain.rfind(';') + 1)] = chain;
  }
  return chains;
}

TEST_CASE("a stack on another stack of Go's goes on in the goroutine, as the runtime lists its callers", "[go]") {
  const std::string kind = GENERATE(as<std::string>{}, "go_stacks", "go_stacks_stripped", "go_stacks_pie");
  const std::string name = GENERATE_COPY(from_range(builds_of(kind)));
  INFO(name);
  if (!has_victim(name)) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  const std::map<std::string, std::string> chains = printed_chains(program);
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), is_in_vdso, 2000);
  INFO("stacks:" << listed(stacks));
  for (const auto& [function, chain] : chains) {
    INFO(chain);
    const std::uint64_t in = with(stacks, ";" + function + ";");
    CHECK(in >= 20);
    const auto is_as_printed = [&, &chain = chain](const std::string& stack) {
      return is_whole(stack) && (tail_from(stack, "runtime.goexit") + ";").rfind(chain + ";", 0) == 0;
    };
    CHECK(static_cast<double>(count_if(stacks, is_as_printed)) >= 0.99 * static_cast<double>(in));
  }
  // Each way to another stack, right below the function that took it.
  CHECK(with(stacks, ";main.trace;runtime.Stack;runtime.systemstack;") >= 20);
  CHECK(with(stacks, ";main.descend;runtime.morestack;runtime.newstack;") >= 5);
  CHECK(count_if(stacks, is_in_vdso) >= 20);
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.99 * n - binomial_tolerance(n, 0.99));
}

constexpr const char* kAcrossStacks = ";runtime.Stack;runtime.systemstack;";

TEST_CASE("a stack through calls from Go to C and back is whole, frame by frame", "[go]") {
  const std::string kind = GENERATE(as<std::string>{}, "go_stacks_cgo", "go_stacks_cgo_stripped");
  const std::string name = GENERATE_COPY(from_range(builds_of(kind)));
  INFO(name);
  if (!has_victim(name)) return;
  const RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), kAcrossStacks, 1000);
  INFO("stacks:" << listed(stacks));
  // The functions of the program itself, without those of the runtime, of cgo and of C, which strip removes.
  const auto own_part = [](const std::string& stack) {
    std::istringstream frames(tail_from(stack, "runtime.goexit"));
    std::string own;
    for (std::string frame; std::getline(frames, frame, ';');) {
      if (frame == "main.main" || frame == "main.outer" || frame == "main.middle" || frame == "main.inner") {
        own += frame.substr(std::string("main.").size()) + ";";
      }
    }
    return own;
  };
  const auto share_of = [&](const std::string& inner, const std::string& chain) {
    const std::uint64_t in = with(stacks, ";" + inner + ";");
    CHECK(in >= 20);
    const auto is_exact = [&](const std::string& stack) {
      return with({{stack, 1}}, ";" + inner + ";") == 1 && is_whole(stack) && own_part(stack).rfind(chain, 0) == 0;
    };
    return static_cast<double>(count_if(stacks, is_exact)) / static_cast<double>(in);
  };
  CHECK(share_of("main.outer", "main;outer;") >= 0.99);
  CHECK(share_of("main.middle", "main;outer;middle;") >= 0.99);
  CHECK(share_of("main.inner", "main;outer;middle;inner;") >= 0.99);
  // C's frames are there, too.
  const auto inner = count_if(stacks, [](const std::string& stack) {
    const std::size_t at = stack.find(";runtime.asmcgocall;");
    const std::size_t back = stack.find(";crosscall2;runtime.cgocallback;runtime.cgocallbackg;", at);
    return back != std::string::npos && stack.find(";runtime.asmcgocall;", back) != std::string::npos;
  });
  CHECK(inner >= 20);
  CHECK(with(stacks, ";main.inner;runtime.Stack;runtime.systemstack;") >= 20);
  const auto n = static_cast<double>(total(stacks));
  CHECK(static_cast<double>(count_if(stacks, is_whole)) >= 0.99 * n - binomial_tolerance(n, 0.99));
}

TEST_CASE("with frame pointers alone the daemon says so, and most stacks lack frames") {
  RunningDaemon daemon({"--unwind", "frame-pointers"});
  ChildProcess program({victim("chains"), "recursion", "20"});
  REQUIRE(has_samples(daemon, program.pid(), 100));
  const FoldedStacks stacks = daemon.folded(profile_of(program.pid()));
  CHECK(with(stacks, ";main;descend;descend;") < total(stacks) / 2);
#if defined(__x86_64__)
  // Code of arm64 without frame pointers leaves that register alone: its callers' chain is there, and nothing tells
  // that frames are missing.
  CHECK(count_if(stacks, is_whole) < total(stacks) / 2);
#endif
  CHECK(daemon.get("/healthz").body.find("frame pointers alone") != std::string::npos);
}

}  // namespace
}  // namespace flamed::test
