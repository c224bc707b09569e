// SPDX-License-Identifier: Apache-2.0
//
// Profile: the answer to "what was the CPU doing", as a plain value that renderers turn into bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "store/answer_facts.h"
#include "store/process_info.h"
#include "store/quality.h"

namespace flamed::store {

/// What a frame is, for colouring and for `annotate`.
enum class FrameKind : std::uint8_t {
  kRoot,  ///< the tree's own root, and the per-process level of a whole-machine profile
  kNative,
  kGo,
  kKernel,
  kVdso,
  kJit,      ///< memory without a file
  kUnknown,  ///< could not be named; `reason` says why
  kMarker,   ///< not code: where a truncated stack begins
};
std::string_view name_of(FrameKind kind);

/// One frame as a person reads it.
struct NamedFrame {
  std::string name;    ///< demangled and shortened, or "[unknown] (module+0x1a2b)"
  std::string module;  ///< file name or "[kernel]", "nf_tables", "[vdso]"; may be empty
  FrameKind kind = FrameKind::kUnknown;
  std::string reason;  ///< why it has no name; empty when it has one

  std::string full_name{};  ///< with template arguments and parameters; empty where that is `name`
  std::string build_id{};   ///< of the module, in hex; may be empty
  std::string file{};       ///< source file; empty where not known
  std::uint32_t line = 0;   ///< in `file`; 0 where not known
  bool inlined = false;     ///< stands in the function before it in its chain

  friend bool operator==(const NamedFrame&, const NamedFrame&) = default;
};

/// The functions that one address stands for, outermost first: one, or more where calls were inlined. Never empty.
using InlineChain = std::vector<NamedFrame>;

/// Turns addresses into names. Declared here, where profiles are built; implemented by whoever knows files.
class FrameNamer {
 public:
  virtual ~FrameNamer() = default;
  /// One chain for each frame, in the same order. Called once per profile with all of its distinct frames, so that
  /// the work can be batched by module. Any thread.
  virtual std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) = 0;
};

/// Nodes stand in depth-first order, parents before children, siblings by name. Node 0 is the root.
struct ProfileNode {
  std::uint32_t frame = 0;   ///< index into Profile::frames
  std::uint32_t parent = 0;  ///< index into Profile::nodes; the root is its own parent
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
  std::uint64_t total_ns = 0;  ///< total_samples weighted by the period of each
};

/// A flame graph.
struct Profile : AnswerFacts {
  std::vector<NamedFrame> frames;      ///< distinct
  std::vector<ProfileNode> nodes;      ///< at least the root
  std::vector<ProcessInfo> processes;  ///< those with samples here, and those asked for by pid
};

}  // namespace flamed::store
