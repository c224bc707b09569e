// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/demangle.h"

// Keeps libiberty.h from declaring basename(), which conflicts with glibc's C++ declaration.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <exception>
#include <optional>

#include "symbolizer/reader/short_name.h"

namespace flamed::symbolizer {
namespace {

using Language = NameLanguage;

/// One run of libiberty. Its output callback can't stop it, and the output of a short hostile name can be exponentially
/// long, so the callback jumps out. That is safe because it skips only C frames, which own no memory at that point: the
/// C++ demangler's callback interface keeps everything on the stack, and the Rust one has heap memory only while it
/// prints a non-ASCII identifier (see append).
struct Run {
  const char* mangled = nullptr;
  Language language = Language::kCpp;
  int options = DMGL_NO_OPTS;
  std::string out;  ///< with reserved capacity: append() must neither throw nor allocate
  std::size_t produced = 0;
  bool succeeded = false;
  std::jmp_buf stop;
};

constexpr std::size_t kReservedBytes = kMaxDemangledBytes;

void append(const char* text, std::size_t bytes, void* opaque) {
  Run& run = *static_cast<Run*>(opaque);
  run.produced += bytes;
  if (run.produced <= kReservedBytes) {
    run.out.append(text, bytes);
    return;
  }
  // A Rust identifier may be in memory that libiberty frees after this call; separators ("::", "<") never are.
  if (run.language == Language::kCpp || bytes <= 2) std::longjmp(run.stop, 1);
}

void call_libiberty(Run& run) {
  // No object with a destructor may be in this frame or in append(): longjmp would skip it.
  if (setjmp(run.stop) != 0) {
    run.succeeded = false;
    return;
  }
  const int ok = run.language == Language::kRust ? ::rust_demangle_callback(run.mangled, run.options, append, &run)
                                                 : ::cplus_demangle_v3_callback(run.mangled, run.options, append, &run);
  run.succeeded = ok != 0;
}

/// libiberty refuses C++ names longer than 1,024 bytes, because it works on the stack: up to 32 bytes for each pair of
/// (template, scope) plus its recursion, in the worst case 27 MB for kMaxMangledBytes. Heavily templated programs have
/// many such names, so these get a stack of their own, whose untouched pages cost nothing.
constexpr std::size_t kLongNameBytes = 1024;
constexpr std::size_t kLongNameStackBytes = std::size_t{64} << 20;

/// The first thread's stack grows up to the limit, so with a high limit another thread is not needed. So in the ELF
/// worker, which may not start threads.
bool has_large_stack() {
  rlimit limit{};
  return ::gettid() == ::getpid() && ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur > kLongNameStackBytes;
}

void call_on_large_stack(Run& run) {
  if (has_large_stack()) return call_libiberty(run);
  ::pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_t thread{};
  const auto body = [](void* argument) -> void* {
    call_libiberty(*static_cast<Run*>(argument));
    return nullptr;
  };
  const bool started = ::pthread_attr_setstacksize(&attributes, kLongNameStackBytes) == 0 &&
                       ::pthread_create(&thread, &attributes, body, &run) == 0;
  ::pthread_attr_destroy(&attributes);
  if (started) ::pthread_join(thread, nullptr);
}

std::optional<std::string> run_demangler(const std::string& mangled, Language language) {
  Run run;
  run.mangled = mangled.c_str();
  run.language = language;
  run.out.reserve(kReservedBytes);
  if (language == Language::kCpp) run.options = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
  if (language == Language::kCpp && mangled.size() > kLongNameBytes) {
    run.options |= DMGL_NO_RECURSE_LIMIT;
    call_on_large_stack(run);
  } else {
    call_libiberty(run);
  }
  if (!run.succeeded || run.out.empty() || run.produced > kReservedBytes) return std::nullopt;
  run.out.shrink_to_fit();
  return std::move(run.out);
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// The start of the suffix that GCC or LLVM added to a copy of a function (".isra.0", ".cold", ".llvm.123"), else the
/// size. Mangled names may have dots themselves, but capitals follow those.
std::size_t clone_suffix(std::string_view name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const bool is_suffix = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot), name.end(), [](char c) {
    return c == '.' || c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
  return is_suffix ? dot : name.size();
}

constexpr std::string_view kPltMark = "@plt";

DemangledName both_names(const std::string& full, Language language, const std::string& mark) {
  DemangledName names{short_name(full, language) + mark, full + mark};
  if (names.full_name == names.name) names.full_name.clear();
  return names;
}

/// `mark` is appended to the name.
std::optional<DemangledName> demangle_rust(const std::string& name, const std::string& mark) {
  const std::optional<std::string> full = run_demangler(name, Language::kRust);
  if (!full) return std::nullopt;
  return both_names(*full, Language::kRust, mark);
}

std::optional<DemangledName> demangle_cpp(const std::string& name, const std::string& mark) {
  const std::size_t suffix_at = clone_suffix(name);
  const std::optional<std::string> full = run_demangler(name.substr(0, suffix_at), Language::kCpp);
  if (!full) return std::nullopt;
  const std::string clone = suffix_at == name.size() ? "" : " [clone " + name.substr(suffix_at) + "]";
  return both_names(*full, Language::kCpp, clone + mark);
}

/// The name of a generic function, since Go 1.21 with the type arguments: "slices.Sort[go.shape.[]int,go.shape.int]".
/// Go's own tracebacks show "slices.Sort[...]".
DemangledName shorten_go(std::string_view name) {
  constexpr std::string_view kArguments = "[...]";
  DemangledName names{{}, std::string(name)};
  std::size_t depth = 0;
  for (const char c : name) {
    if (c == '[' && depth++ == 0) names.name += kArguments;
    if (depth == 0) names.name += c;
    if (c == ']' && depth != 0) --depth;
  }
  return names;
}

}  // namespace

DemangledName demangle(std::string_view name) {
  DemangledName unchanged{std::string(name), {}};
  if (name.size() <= kMaxMangledBytes && name.find("[go.shape.") != std::string_view::npos) return shorten_go(name);
  if (name.size() < 3 || name.size() > kMaxMangledBytes || name.front() != '_' ||
      name.find('\0') != std::string_view::npos) {
    return unchanged;
  }
  try {
    std::string mangled(name);
    std::string mark;
    if (ends_with(name, kPltMark)) {
      mangled.resize(name.size() - kPltMark.size());
      mark = kPltMark;
    }
    std::optional<DemangledName> names;
    // Legacy Rust names are valid C++ names that end in a segment of "h" and 16 hex digits.
    const bool may_be_rust =
        starts_with(mangled, "_R") || (starts_with(mangled, "_ZN") && mangled.find("17h") != std::string::npos);
    if (may_be_rust) names = demangle_rust(mangled, mark);
    if (!names && starts_with(mangled, "_Z")) names = demangle_cpp(mangled, mark);
    return names ? *std::move(names) : unchanged;
  } catch (const std::exception&) {
    return unchanged;  // out of memory
  }
}

}  // namespace flamed::symbolizer
