// SPDX-License-Identifier: Apache-2.0
//
// The code is that of runtime/asm_amd64.s, sys_linux_amd64.s and time_linux_amd64.s, Go 1.17 to 1.27.
#include "symbolizer/reader/go_runtime_code.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "unwinder/architecture.h"
#include "unwinder/rule.h"

namespace flamed::symbolizer {
namespace {

using unwinder::CfaKind;
using unwinder::FpKind;
using unwinder::GoLayout;
using unwinder::RaKind;
using unwinder::Rule;
using unwinder::RuledCode;
using namespace std::string_view_literals;

/// The longest of these functions has some 300 bytes.
constexpr std::uint64_t kMaxBytes = 4096;
/// Both instructions of a return from a signal, with a linker's alignment.
constexpr std::uint64_t kMaxSignalReturnBytes = 64;
constexpr std::size_t kNowhere = std::string_view::npos;

constexpr std::string_view kSaveFramePointer = "\x55\x48\x89\xe5"sv;  // push %rbp; mov %rsp, %rbp

// The stack pointer of the next stack, g.sched.sp, by the register with the g.
constexpr std::string_view kToSavedOfRax = "\x48\x8b\x60\x38"sv;  // mov 56(%rax), %rsp
constexpr std::string_view kToSavedOfRdx = "\x48\x8b\x62\x38"sv;
constexpr std::string_view kToSavedOfRbx = "\x48\x8b\x63\x38"sv;
constexpr std::string_view kToSavedOfRsi = "\x48\x8b\x66\x38"sv;
constexpr std::string_view kToSavedOfR14 = "\x49\x8b\x66\x38"sv;
constexpr std::string_view kToRbx = "\x48\x89\xdc"sv;  // mov %rbx, %rsp
constexpr std::string_view kToRdx = "\x48\x89\xd4"sv;
constexpr std::string_view kToRsi = "\x48\x89\xf4"sv;
constexpr std::string_view kToRdi = "\x48\x89\xfc"sv;
constexpr std::string_view kToR12 = "\x4c\x89\xe4"sv;
constexpr std::string_view kToTop = "\x48\x8b\x24\x24"sv;  // mov (%rsp), %rsp
constexpr std::string_view kPopR12 = "\x41\x5c"sv;
constexpr std::string_view kPushR12 = "\x41\x54"sv;
constexpr std::string_view kAlign = "\x48\x83\xe4\xf0"sv;  // and $-16, %rsp

/// The place behind the first of `instructions` at or after `from`.
std::size_t behind_first(std::string_view code, std::initializer_list<std::string_view> instructions,
                         std::size_t from = 0) {
  std::size_t end = kNowhere;
  std::size_t first = kNowhere;
  for (const std::string_view instruction : instructions) {
    const std::size_t at = code.find(instruction, from);
    if (at >= first) continue;
    first = at;
    end = at + instruction.size();
  }
  return end;
}

/// Takes instructions from the front of code.
class Cursor {
 public:
  explicit Cursor(std::string_view code) : left_(code) {}

  bool take(std::string_view instruction) {
    if (!left_.starts_with(instruction)) return false;
    left_.remove_prefix(instruction.size());
    return true;
  }
  std::optional<std::int32_t> take_byte() {
    if (left_.empty()) return std::nullopt;
    const auto value = static_cast<std::int8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  std::optional<std::int32_t> take_word() {
    std::int32_t value = 0;
    if (left_.size() < sizeof(value)) return std::nullopt;
    std::memcpy(&value, left_.data(), sizeof(value));
    left_.remove_prefix(sizeof(value));
    return value;
  }

 private:
  std::string_view left_;
};

/// Where the runtime keeps things in this program.
struct Runtime {
  std::int32_t current;    ///< the offset of the address of the current g from the thread pointer
  std::int32_t goroutine;  ///< the offset in an m of the g of the goroutine (m.curg)
};

/// From what systemstack does when the function has returned: g(TLS) to %rax, g.m to %rbx, m.curg to %rax.
std::optional<Runtime> runtime_of(std::string_view code) {
  const std::size_t call = code.find("\x48\x8b\x3f\xff\xd7"sv);  // mov (%rdi), %rdi; call *%rdi
  if (call == kNowhere) return std::nullopt;
  Cursor next(code.substr(call + 5));
  Runtime found{};
  std::optional<std::int32_t> word;
  if (next.take("\x64\x48\x8b\x04\x25"sv)) {  // mov %fs:word, %rax
    word = next.take_word();
  } else if (next.take("\x48\xc7\xc1"sv)) {  // mov $word, %rcx; mov %fs:(%rcx), %rax
    word = next.take_word();
    if (!next.take("\x64\x48\x8b\x01"sv)) return std::nullopt;
  }
  if (!word || *word >= 0 || *word % 8 != 0 || *word < -8 * 255) return std::nullopt;
  found.current = *word;
  if (!next.take("\x48\x8b\x58\x30"sv)) return std::nullopt;  // mov 48(%rax), %rbx
  static_assert(GoLayout::kThread == 0x30 && GoLayout::kSavedSp == 0x38);
  std::optional<std::int32_t> goroutine;
  if (next.take("\x48\x8b\x83"sv)) {  // mov word(%rbx), %rax
    goroutine = next.take_word();
  } else if (next.take("\x48\x8b\x43"sv)) {
    goroutine = next.take_byte();
  }
  if (!goroutine || *goroutine <= 0) return std::nullopt;
  found.goroutine = *goroutine;
  return found;
}

Rule saved_place(const Runtime& runtime) {
  Rule rule;
  rule.cfa = CfaKind::kGoSaved;
  rule.other_register = static_cast<std::uint8_t>(-runtime.current / 8);
  rule.cfa_addend = runtime.goroutine;
  return rule;
}

/// The return address is below the CFA, and below it the frame pointer, if the function has saved it. If not, it still
/// has its caller's.
void return_below_cfa(Rule& rule, bool is_fp_saved) {
  rule.ra_offset = -8;
  if (!is_fp_saved) return;
  rule.fp = FpKind::kAtCfa;
  rule.fp_offset = -16;
}

/// One of the functions.
class Function {
 public:
  Function(const GoRuntimeFunction& function, std::vector<RuledCode>& found)
      : function_(function), code_(function.code), found_(found) {}

  void is(CfaKind cfa) const {
    Rule rule;
    rule.cfa = cfa;
    add(0, code_.size(), rule);
  }

  void is_signal_return() const {
    if (code_.size() > kMaxSignalReturnBytes) return;
    // mov $15, %rax or mov $15, %eax; syscall: rt_sigreturn().
    if (!code_.starts_with("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"sv) &&
        !code_.starts_with("\xb8\x0f\x00\x00\x00\x0f\x05"sv)) {
      return;
    }
    add(0, code_.size(), unwinder::signal_frame_rule(unwinder::Architecture::kX86_64));
  }

  /// g.sched.sp is the stack pointer in systemstack, above which are a saved frame pointer, since Go 1.21, and the
  /// return address.
  void is_systemstack(const Runtime& runtime) const {
    const std::size_t begin = behind_first(code_, {kToSavedOfRdx, kToRbx});
    const std::size_t end = behind_first(code_, {kToSavedOfRax}, begin);
    Rule rule = saved_place(runtime);
    rule.cfa_offset = saves_fp() ? 16 : 8;
    return_below_cfa(rule, saves_fp());
    add(begin, end, rule);
  }

  /// g.sched is the place in the function that needs more stack.
  void is_morestack(const Runtime& runtime) const {
    Rule rule = saved_place(runtime);
    rule.ra = RaKind::kInGo;
    rule.ra_offset = GoLayout::kSavedPc;
    rule.fp = FpKind::kUnknown;
    add(behind_first(code_, {kToSavedOfRbx}), code_.size(), rule);
  }

  void is_mcall() const {
    Rule rule;
    rule.cfa = CfaKind::kOutermost;
    add(behind_first(code_, {kToSavedOfR14, kToSavedOfRsi}), code_.size(), rule);
  }

  /// The system stack's g has the place in cgocallback's frame there.
  void is_cgocallback(const Runtime& runtime) const {
    const std::size_t begin = behind_first(code_, {kToRdi});
    const std::size_t end = behind_first(code_, {kToSavedOfRsi}, begin);
    if (begin == kNowhere) return;
    Rule rule = saved_place(runtime);
    rule.cfa_addend = 0;
    rule.cfa_offset = depth_at(begin) + 8;
    return_below_cfa(rule, true);
    add(begin, end, rule);
  }

  /// Once with a switch of the stack, and once without.
  void is_asmcgocall() const {
    // mov %rdi, word(%rsp), of the depth: mov 8(%rdi), %rdi; sub %rdx, %rdi
    const std::size_t depth = behind_first(code_, {"\x48\x29\xd7\x48\x89\x7c\x24"sv, "\x48\x29\xd7\x48\x89\x3c\x24"sv});
    if (depth == kNowhere) return;
    const bool at_sp = code_[depth - 2] == '\x3c';
    const std::int32_t place = at_sp ? 0 : Cursor(code_.substr(depth)).take_byte().value_or(0);
    const std::int32_t above_sp = saves_fp() ? 16 : 8;
    Rule rule;
    rule.cfa = CfaKind::kGoDepth;
    rule.cfa_offset = place;
    rule.cfa_addend = above_sp;
    return_below_cfa(rule, saves_fp());
    const std::size_t end = behind_first(code_, {kToRsi}, depth);
    add(at_sp ? depth : depth + 1, end, rule);
    if (end == kNowhere) return;

    // mov %rdx, word(%rsp)
    const std::size_t sp = behind_first(code_, {"\x48\x89\x54\x24"sv, "\x48\x89\x14\x24"sv}, end);
    if (sp == kNowhere || (code_[sp - 2] == '\x14') != at_sp) return;
    rule.cfa = CfaKind::kSpDeref;
    add(at_sp ? sp : sp + 1, behind_first(code_, {kToRsi}, sp), rule);
  }

  /// A function that calls C on an aligned stack, perhaps on the system stack. It has saved the frame pointer.
  void is_call_of_c() const {
    const std::size_t begin = behind_first(code_, {kToSavedOfRdx, kAlign});
    if (begin == kNowhere || depth_at(begin) < 8) return;
    Rule rule;
    rule.cfa = CfaKind::kGoFrame;
    rule.cfa_offset = 16;
    return_below_cfa(rule, true);
    add(begin, behind_first(code_, {kToR12, kToTop, kToRbx, kToRdx}, begin), rule);
  }

  /// Has its return address in r12 meanwhile, since the child runs on the same stack.
  void is_vfork() const {
    const std::size_t begin = behind_first(code_, {kPopR12});
    if (begin == kNowhere) return;
    Rule rule;
    rule.cfa = CfaKind::kSpOffset;
    rule.ra = RaKind::kInRegister;
    rule.other_register = 12;
    add(begin, behind_first(code_, {kPushR12}, begin), rule);
  }

 private:
  [[nodiscard]] bool saves_fp() const { return code_.starts_with(kSaveFramePointer); }

  [[nodiscard]] std::int32_t depth_at(std::size_t place) const {
    for (const GoLineTable::StackDepth& depth : function_.depths) {
      if (place >= depth.distance && place - depth.distance < depth.size) return depth.bytes;
    }
    return 0;
  }

  void add(std::size_t begin, std::size_t end, const Rule& rule) const {
    if (begin >= end || end > code_.size()) return;
    found_.push_back({{function_.entry + begin, end - begin}, rule});
  }

  const GoRuntimeFunction& function_;
  const std::string_view code_;
  std::vector<RuledCode>& found_;
};

enum class Is : std::uint8_t {
  kSystemstack,
  kMorestack,
  kMcall,
  kAsmcgocall,
  kCgocallback,
  kCallOfC,
  kVfork,
  kOutermost,
  kSignalReturn
};

std::optional<Is> kind_of(std::string_view name) {
  constexpr std::string_view kRuntime = "runtime.";
  if (name == "time.now") return Is::kCallOfC;
  if (name.starts_with("syscall.rawVforkSyscall")) return Is::kVfork;
  if (name == "_rt0_amd64_linux" || name == "_rt0_amd64") return Is::kOutermost;
  if (!name.starts_with(kRuntime)) return std::nullopt;
  name.remove_prefix(kRuntime.size());
  struct Name {
    std::string_view name;
    Is is;
  };
  static constexpr std::array<Name, 16> kNames = {{
      {"systemstack", Is::kSystemstack},
      {"morestack", Is::kMorestack},
      {"mcall", Is::kMcall},
      {"asmcgocall", Is::kAsmcgocall},
      {"cgocallback", Is::kCgocallback},
      {"nanotime1", Is::kCallOfC},
      {"walltime", Is::kCallOfC},
      {"vgetrandom1", Is::kCallOfC},
      {"callCgoMmap", Is::kCallOfC},
      {"callCgoMunmap", Is::kCallOfC},
      {"callCgoSigaction", Is::kCallOfC},
      {"sigfwd", Is::kCallOfC},
      {"mstart", Is::kOutermost},
      {"goexit", Is::kOutermost},
      {"rt0_go", Is::kOutermost},
      {"sigreturn", Is::kSignalReturn},
  }};
  // "sigreturn__sigaction" since Go 1.20.
  if (name.starts_with("sigreturn")) return Is::kSignalReturn;
  const auto* const found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& of) { return of.name == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->is);
}

}  // namespace

std::vector<GoRuntimeFunction> find_go_runtime(
    const GoLineTable& table, const std::function<bool(std::uint64_t address, std::span<char> to)>& read) {
  constexpr std::size_t kMostFunctions = 64;
  std::vector<GoRuntimeFunction> functions;
  for (std::size_t i = 0; i < table.size() && functions.size() < kMostFunctions; ++i) {
    const GoLineTable::Function function = table.function(i);
    if (function.end - function.entry > kMaxBytes || !kind_of(function.name)) continue;
    GoRuntimeFunction& found = functions.emplace_back();
    found.name = function.name;
    found.entry = function.entry;
    found.code.resize(function.end - function.entry);
    found.depths = table.stack_depths(i);
    if (!read(found.entry, found.code)) functions.pop_back();
  }
  return functions;
}

std::vector<RuledCode> go_runtime_code(std::span<const GoRuntimeFunction> functions) {
  std::optional<Runtime> runtime;
  for (const GoRuntimeFunction& function : functions) {
    if (!runtime && kind_of(function.name) == Is::kSystemstack) runtime = runtime_of(function.code);
  }
  std::vector<RuledCode> found;
  for (const GoRuntimeFunction& candidate : functions) {
    const Function function(candidate, found);
    const std::optional<Is> is = kind_of(candidate.name);
    if (!is) continue;
    const bool needs_runtime = *is == Is::kSystemstack || *is == Is::kMorestack || *is == Is::kCgocallback;
    if (needs_runtime && !runtime) {
      // By its stack depth the walk would go on in whatever lies above.
      function.is(CfaKind::kUnsupported);
      continue;
    }
    switch (*is) {
      case Is::kSystemstack:
        function.is_systemstack(*runtime);
        break;
      case Is::kMorestack:
        function.is_morestack(*runtime);
        break;
      case Is::kMcall:
        function.is_mcall();
        break;
      case Is::kAsmcgocall:
        function.is_asmcgocall();
        break;
      case Is::kCgocallback:
        function.is_cgocallback(*runtime);
        break;
      case Is::kCallOfC:
        function.is_call_of_c();
        break;
      case Is::kVfork:
        function.is_vfork();
        break;
      case Is::kOutermost:
        function.is(CfaKind::kOutermost);
        break;
      case Is::kSignalReturn:
        function.is_signal_return();
        break;
    }
  }
  return found;
}

}  // namespace flamed::symbolizer
