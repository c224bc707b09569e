// SPDX-License-Identifier: Apache-2.0
//
// Checks that the running kernel loads all kernel programs as one compiler builds them, and that they take samples.
// Each compiler has a test program of its own with its object (meson.build). FLAMED_BINARY is the daemon with the same
// object, FLAMED_BPF_COMPILER the compiler's name.
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/sampler/kernel_orc.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/waits/off_cpu_program.h"
#include "daemon/waits/wait_program.h"
#include "symbolizer/names/kernel_symbols.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using daemon::KernelProgram;

bool is_whole(const std::string& stack) { return stack.rfind("[truncated", 0) != 0; }

template <typename T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().message();
}

/// Has the running kernel this version or a later one?
bool kernel_is_from(int major, int minor) {
  utsname name{};
  int running_major = 0;
  int running_minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &running_major, &running_minor) != 2) return false;
  return running_major > major || (running_major == major && running_minor >= minor);
}

TEST_CASE("the kernel takes every program in every way in which the daemon loads it") {
  const bool use_unwind_tables = GENERATE(true, false);
  const bool read_by_type = GENERATE(false, true);
  INFO("unwind tables: " << use_unwind_tables << ", kernel memory read by type: " << read_by_type);
  // Registers can be read by type in kernels with bpf_task_pt_regs().
  if (read_by_type && !kernel_is_from(5, 15)) return;

  KernelProgram::Variant variant;
  variant.use_unwind_tables = use_unwind_tables;
  variant.read_by_type = read_by_type;
  variant.use_runtimes = use_unwind_tables;
  Result<KernelProgram> program = KernelProgram::load_variant(variant);
  INFO(why(program));
  REQUIRE(program);
  if (!use_unwind_tables) return;
  const Status walk = program->walks().load_user_walk();
  INFO(why(walk));
  CHECK(walk);
  const Status linked_walk = program->walks().load_linked_walk();
  INFO(why(linked_walk));
  CHECK(linked_walk);
  INFO(program->walks().why_no_slots());
  CHECK(program->walks().why_no_slots().empty());
  if (read_by_type) return;
  const SystemClock clock;
  symbolizer::KernelSymbols symbols(clock);
  const Result<flamed_kernel_orc> orc =
      daemon::find_kernel_orc([&](const std::vector<std::string_view>& names) { return symbols.addresses(names); });
  if (!orc) return;  // kernel_walk_test reports the reason
  const Status kernel_walk = program->walks().load_kernel_walk(orc);
  INFO(why(kernel_walk));
  CHECK(kernel_walk);
}

TEST_CASE("the kernel takes the program that visits waiting threads") {
  const Result<daemon::WaitProgram> program = daemon::WaitProgram::load();
  INFO(why(program));
  CHECK(program);
}

TEST_CASE("the kernel takes the program that counts waits at each switch") {
  const Result<daemon::OffCpuProgram> program = daemon::OffCpuProgram::load({}, true);
  INFO(why(program));
  CHECK(program);
}

TEST_CASE("stacks of a program without frame pointers are whole") {
  RunningDaemon daemon;
  ChildProcess program({victim("chains"), "recursion", "60"});
  const std::string deepest = ";main;" + repeated("descend", 61) + ";work";
  const FoldedStacks stacks = profile_once_seen(daemon, program.pid(), deepest, 300);
  const std::uint64_t whole = count_if(stacks, is_whole);
  for (const auto& [stack, samples] : stacks) {
    if (!is_whole(stack)) UNSCOPED_INFO(samples << " of " << stack);
  }
  utsname name{};
  ::uname(&name);
  const char* compiler = std::getenv("FLAMED_BPF_COMPILER");
  REQUIRE(compiler != nullptr);
  // Not with WARN, which would break the line that test/vm reads.
  std::printf("compiler %s on Linux %s: loads, %llu of %llu stacks whole, %.2f %%\n", compiler, name.release,
              static_cast<unsigned long long>(whole), static_cast<unsigned long long>(total(stacks)),
              100.0 * static_cast<double>(whole) / static_cast<double>(total(stacks)));
  CHECK(static_cast<double>(whole) >= 0.99 * static_cast<double>(total(stacks)));
  CHECK(static_cast<double>(with(stacks, deepest)) >= 0.85 * static_cast<double>(total(stacks)));
  const RunningDaemon::End end = daemon.end();
  CHECK(end.exit_code == 0);
  CHECK(end.lost == 0);
}

}  // namespace
}  // namespace flamed::test
