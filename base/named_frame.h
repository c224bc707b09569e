// SPDX-License-Identifier: Apache-2.0
//
// NamedFrame: a frame as a person reads it. The symbolizer makes them, caches keep them, answers share them: from the
// symbol cache to the bytes of an answer they are not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flamed {

/// What a frame is, for colouring and for `annotate`.
enum class FrameKind : std::uint8_t {
  kRoot,  ///< an answer's own root, and the level of groups below it
  kNative,
  kGo,
  kKernel,
  kVdso,
  kJit,      ///< memory without a file
  kUnknown,  ///< could not be named; `reason` says why
  kMarker,   ///< not code: where a truncated stack begins
};
std::string_view name_of(FrameKind kind);

struct NamedFrame {
  std::string name;    ///< demangled and shortened, or "[unknown] (module+0x1a2b)"
  std::string module;  ///< file name or "[kernel]", "nf_tables", "[vdso]", "[anon]"; may be empty
  FrameKind kind = FrameKind::kUnknown;
  std::string reason;  ///< why it has no name; empty when it has one

  std::string full_name{};  ///< with template arguments and parameters; empty where that is `name`
  std::string build_id{};   ///< of the module, in hex; may be empty
  std::string file{};       ///< source file as the compiler named it; empty where not known
  std::uint32_t line = 0;   ///< in `file`: of the address, or of the call for a function that others were inlined into;
                            ///< 0 where not known
  bool inlined = false;     ///< has no code of its own: the compiler put it into the function before it in its chain
  bool pending = false;     ///< the next time more may be known: what is asked for is on its way

  /// hash_of() name and module, so that who has many of them need not read all their texts; 0 where nobody worked it
  /// out.
  std::uint64_t hash = 0;

  /// Whatever is known of the hash.
  friend bool operator==(const NamedFrame& a, const NamedFrame& b);
};

/// Never 0.
[[nodiscard]] std::uint64_t hash_of(std::string_view name, std::string_view module);

/// The functions that one address stands for, outermost first: one, or more where calls were inlined. Never empty.
using InlineChain = std::vector<NamedFrame>;

/// Whether the same address may have other names the next time: "don't know" may be only "not yet", and just-in-time
/// compilers use their memory again for other functions.
[[nodiscard]] bool may_change(const InlineChain& chain);

/// Bytes of memory that the chain has, its texts included.
[[nodiscard]] std::size_t memory_of(const InlineChain& chain);

/// With the frames' hashes.
[[nodiscard]] std::shared_ptr<const InlineChain> share(InlineChain chain);

}  // namespace flamed
