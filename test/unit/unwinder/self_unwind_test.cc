// SPDX-License-Identifier: Apache-2.0
//
// This program walks its own stack by its own rows, in known chains of calls through code without frame pointers. It
// compares the result with glibc's backtrace(), which uses another reader of .eh_frame (libgcc's).
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "test/catch.h"
#include "test/unit/unwinder/load_rows.h"
#include "test/unit/unwinder/victims/known_chain.h"
#include "unwinder/step.h"

namespace flamed::unwinder {
namespace {

#if defined(__x86_64__)
constexpr Architecture kHost = Architecture::kX86_64;
#else
constexpr Architecture kHost = Architecture::kArm64;
#endif

/// The mappings of this process.
class OwnModules {
 public:
  OwnModules() { ::dl_iterate_phdr(&OwnModules::add, this); }

  [[nodiscard]] const Rule& find(std::uint64_t address) const {
    static constexpr Rule kNothing{};
    for (const Module& module : modules_) {
      if (address >= module.start && address < module.end) return module.rows.find(address - module.bias);
    }
    return kNothing;
  }
  [[nodiscard]] std::size_t size() const { return modules_.size(); }

 private:
  struct Module {
    std::uint64_t bias;
    std::uint64_t start;
    std::uint64_t end;
    UnwindRows rows;
  };

  static int add(dl_phdr_info* info, std::size_t, void* self) {
    Module module{info->dlpi_addr, ~std::uint64_t{0}, 0, {}};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& phdr = info->dlpi_phdr[i];
      if (phdr.p_type != PT_LOAD) continue;
      module.start = std::min<std::uint64_t>(module.start, info->dlpi_addr + phdr.p_vaddr);
      module.end = std::max<std::uint64_t>(module.end, info->dlpi_addr + phdr.p_vaddr + phdr.p_memsz);
    }
    std::string path = info->dlpi_name;
    if (path.empty()) path = "/proc/self/exe";
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto read = [&] {
      if (fd) return symbolizer::read_elf_unwind_source(fd.get());
      // The vdso has a name but no file.
      return symbolizer::read_elf_unwind_source(
          // NOLINTNEXTLINE(performance-no-int-to-ptr)
          std::span(reinterpret_cast<const std::byte*>(module.start), module.end - module.start));
    };
    const Result<symbolizer::ElfUnwindSource> source = read();
    if (!source) return 0;
    Result<UnwindRows> rows = rows_of(*source);
    if (!rows) return 0;
    module.rows = std::move(rows).value();
    static_cast<OwnModules*>(self)->modules_.push_back(std::move(module));
    return 0;
  }

  std::vector<Module> modules_;
};

/// Through a pipe, since the kernel, and qemu-user, refuse to write what can't be read.
std::optional<std::uint64_t> read_own(std::uint64_t address) {
  static const std::array<int, 2> ends = [] {
    std::array<int, 2> made{};
    if (::pipe2(made.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    return made;
  }();
  std::uint64_t word = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (::write(ends[1], reinterpret_cast<const void*>(address), sizeof(word)) != static_cast<ssize_t>(sizeof(word))) {
    return std::nullopt;
  }
  if (::read(ends[0], &word, sizeof(word)) != static_cast<ssize_t>(sizeof(word))) return std::nullopt;
  return word;
}

struct Walk {
  std::vector<std::uint64_t> ours;
  std::vector<std::uint64_t> theirs;
  StepResult end = StepResult::kNext;
  bool saw_signal_frame = false;
  bool saw_realigned_frame = false;
};

WalkFrame frame_of(const ucontext_t& context) {
  WalkFrame frame;
#if defined(__x86_64__)
  frame.pc = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  frame.sp = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  frame.fp = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RBP]);
#else
  frame.pc = context.uc_mcontext.pc;
  frame.sp = context.uc_mcontext.sp;
  frame.fp = context.uc_mcontext.regs[29];
  frame.lr = context.uc_mcontext.regs[30];
  frame.lr_known = true;
#endif
  return frame;
}

/// Both walks start here. Their first addresses differ: they are two places in this function.
void take_stack(void* argument) {
  static const OwnModules modules;
  Walk& walk = *static_cast<Walk*>(argument);

  std::array<void*, 512> addresses{};
  const int count = ::backtrace(addresses.data(), static_cast<int>(addresses.size()));
  for (int i = 0; i < count; ++i)
    walk.theirs.push_back(reinterpret_cast<std::uint64_t>(addresses[static_cast<std::size_t>(i)]));

  ucontext_t context;
  if (::getcontext(&context) != 0) return;
  WalkFrame frame = frame_of(context);
  // getcontext() returns the place after its call, like a return address.
  frame.interrupted = false;
  while (walk.ours.size() < addresses.size()) {
    walk.ours.push_back(frame.pc);
    const Rule& rule = modules.find(frame.lookup_address());
    walk.saw_signal_frame |= rule.signal_frame != 0;
    walk.saw_realigned_frame |= rule.cfa == CfaKind::kFpDeref;
    walk.end = step(rule, kHost, frame, read_own);
    if (walk.end != StepResult::kNext) break;
  }
}

void check(const Walk& walk, std::size_t at_least) {
  CHECK(walk.end == StepResult::kOutermost);
  CHECK(walk.ours.size() >= at_least);
  // The first address differs, and a sanitizer's backtrace() counts itself, too.
  REQUIRE((walk.theirs.size() == walk.ours.size() || walk.theirs.size() == walk.ours.size() + 1));
  const auto callers = static_cast<std::ptrdiff_t>(walk.ours.size() - 1);
  CHECK(std::vector(walk.ours.end() - callers, walk.ours.end()) ==
        std::vector(walk.theirs.end() - callers, walk.theirs.end()));
}

TEST_CASE("A stack of 10, 60 and 200 calls without frame pointers is whole and exact") {
  const int depth = GENERATE(10, 60, 200);
  Walk walk;
  known_chain_deep(depth, take_stack, &walk);
  check(walk, static_cast<std::size_t>(depth) + 3);
}

TEST_CASE("A realigned frame with a part of variable size is crossed") {
  Walk walk;
  known_chain_realigned(1000, take_stack, &walk);
  check(walk, 5);
#if defined(__x86_64__)
  CHECK(walk.saw_realigned_frame);
#endif
}

TEST_CASE("A callback of the C library's qsort is traced through the library") {
  Walk walk;
  known_chain_qsort(take_stack, &walk);
  check(walk, 5);
}

TEST_CASE("A signal handler on a stack of its own is traced to the code that it interrupted") {
  Walk walk;
  known_chain_signal(take_stack, &walk);
  check(walk, 7);
  CHECK(walk.saw_signal_frame);
}

TEST_CASE("A thread's stack ends, whole, where the thread started") {
  Walk walk;
  known_chain_thread(take_stack, &walk);
  check(walk, 8);
}

TEST_CASE("A stack taken in an exception handler is whole") {
  Walk walk;
  try {
    known_chain_deep(
        5, [](void*) { throw std::runtime_error("thrown through frames of C"); }, nullptr);
  } catch (const std::runtime_error&) {
    known_chain_deep(3, take_stack, &walk);
  }
  check(walk, 5);
}

TEST_CASE("The rows of the vdso are read from memory") {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* start = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  REQUIRE(start != nullptr);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(start);
  const std::size_t size = header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize;
  const Result<symbolizer::ElfUnwindSource> source = symbolizer::read_elf_unwind_source(std::span(start, size));
  REQUIRE(source.ok());
  const Result<UnwindRows> rows = rows_of(*source);
  REQUIRE(rows.ok());
  CHECK(rows->stats.functions > 3);
}

}  // namespace
}  // namespace flamed::unwinder
