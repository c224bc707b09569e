// SPDX-License-Identifier: Apache-2.0
//
// NamedFrame: a frame with its name. The symbolizer creates them, caches keep them, answers share them: they are not
// copied between the symbol cache and an answer's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flamed {

/// The kind of a frame, for colours and for `annotate`. The numbers are in the files of the history: new kinds come
/// last.
enum class FrameKind : std::uint8_t {
  kRoot,  ///< an answer's own root, and the level of groups below it
  kNative,
  kGo,
  kKernel,
  kVdso,
  kJit,  ///< memory without a file
  kPython,
  kUnnamed,  ///< a function that is known only by its place, `offset`; `reason` says why
  kUnknown,  ///< not even its function is known; `reason` says why
  kMarker,   ///< not code: where a truncated stack begins
  kJavaScript,
  kJava,
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kJava;
std::string_view name_of(FrameKind kind);

/// Whether it is code without a name.
constexpr bool is_nameless(FrameKind kind) { return kind == FrameKind::kUnnamed || kind == FrameKind::kUnknown; }

struct NamedFrame {
  std::string name;    ///< demangled and shortened, "[module+0x1a20]" of kUnnamed, or "[unknown] (module+0x1a2b)"
  std::string module;  ///< file name or "[kernel]", "nf_tables", "[vdso]", "[anon]"; may be empty
  FrameKind kind = FrameKind::kUnknown;
  std::string reason;  ///< why it has no name; empty when it has one

  std::string full_name{};  ///< with template arguments and parameters; empty if it equals `name`
  std::string build_id{};   ///< of the module, in hex; may be empty
  std::string file{};       ///< source file as the compiler named it; empty if not known
  std::uint32_t line = 0;   ///< in `file`: of the address, or of the call for a function that others were inlined into;
                            ///< 0 if not known
  bool inlined = false;     ///< the compiler inlined it into the function before it in its chain
  bool pending = false;     ///< more may be known the next time: data has been requested
  std::uint64_t offset = 0;  ///< of kUnnamed: the file offset of the function's first byte

  /// hash_of() name and module, for comparing many frames without reading their texts; 0 if not computed.
  std::uint64_t hash = 0;

  /// Ignores a hash that is not computed.
  friend bool operator==(const NamedFrame& a, const NamedFrame& b);
};

/// Never 0.
[[nodiscard]] std::uint64_t hash_of(std::string_view name, std::string_view module);

/// The functions at one address, outermost first: several if calls were inlined. Never empty.
using InlineChain = std::vector<NamedFrame>;

/// Whether the same address may have other names the next time: names may still be loaded, and just-in-time compilers
/// reuse their memory for other functions, as the kernel does with that of BPF programs.
[[nodiscard]] bool may_change(const InlineChain& chain);

/// Memory of the chain in bytes, with its texts.
[[nodiscard]] std::size_t memory_of(const InlineChain& chain);

/// Also computes the frames' hashes.
[[nodiscard]] std::shared_ptr<const InlineChain> share(InlineChain chain);

}  // namespace flamed
