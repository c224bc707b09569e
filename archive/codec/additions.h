// SPDX-License-Identifier: Apache-2.0
//
// Additions: what a minute adds to the dictionary of its session, which is one run of the daemon within one file.
// Modules, frames, stacks, threads and processes have numbers from 0 in the order of their addition; they refer to each
// other, and minutes to them, by these numbers. A plain value, and its bytes. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "archive/codec/minute.h"
#include "base/identity.h"
#include "base/result.h"
#include "store/model/gap.h"
#include "store/model/process_info.h"

namespace flamed::archive {

/// As symbolizer::ModuleKind. The numbers are part of the layout.
enum class ModuleKind : std::uint8_t { kKernel = 0, kVdso = 1, kFile = 2, kAnonymous = 3 };
inline constexpr std::size_t kModuleKinds = 4;

struct Module {
  ModuleKind kind = ModuleKind::kFile;
  std::string path;  ///< as the mapping named it, in the process's mount namespace; may be empty
  ProcessId owner;   ///< of kAnonymous: the memory's process

  friend bool operator==(const Module&, const Module&) = default;
};

/// flamed::Frame with `module` being either below kFirstFreeModule, with the meaning that it has there, or
/// kFirstFreeModule + the number of a Module.
struct FrameAddition {
  std::uint32_t module = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const FrameAddition&, const FrameAddition&) = default;
};

/// A frame below the innermost one of its caller, which has a lower number. Stack 0 has no frames and is not added.
struct StackAddition {
  std::uint32_t caller = 0;
  std::uint32_t frame = 0;

  friend bool operator==(const StackAddition&, const StackAddition&) = default;
};

/// As store::ThreadRecord.
struct ThreadAddition {
  std::uint32_t process = 0;
  std::int32_t tid = 0;
  std::string comm;
  std::uint32_t owner = store::kNoUser;
  bool is_hidden = false;

  friend bool operator==(const ThreadAddition&, const ThreadAddition&) = default;
};

/// The properties of a process, new or changed. `number` is that of a known one, or the next.
struct ProcessState {
  std::uint32_t number = 0;
  store::ProcessInfo info;               ///< `uid` as in /proc
  std::uint32_t owner = store::kNoUser;  ///< of its last sample
  bool is_hidden = false;                ///< likewise
};

struct Additions {
  DictionarySize before;  ///< the first free number of each kind
  std::vector<Module> modules;
  std::vector<FrameAddition> frames;
  std::vector<StackAddition> stacks;
  std::vector<ThreadAddition> threads;
  std::vector<ProcessState> processes;
  /// That are new, or longer than in earlier additions: a gap with the same start, reason and CPU replaces the former.
  std::vector<store::Gap> gaps;

  /// With these additions.
  [[nodiscard]] DictionarySize after() const;
};

Result<std::vector<std::byte>> encode(const Additions& additions);

/// An Error says what is wrong with the bytes, also if they refer to something that is not in the dictionary; with code
/// ENOTSUP they have another version. `before` must equal `known`.
Result<Additions> decode_additions(std::span<const std::byte> block, const DictionarySize& known);

/// Of the values that it has, besides itself.
[[nodiscard]] std::size_t text_bytes_of(const ProcessState& state);

/// Of all later states of a session, no more is kept: then less is known of some processes.
inline constexpr std::size_t kMostStateBytes = std::size_t{8} << 20;

/// Later states of processes that the dictionary has, in a block of their own.
Result<std::vector<std::byte>> encode_states(std::vector<ProcessState> states);
Result<std::vector<ProcessState>> decode_states(std::span<const std::byte> block);

}  // namespace flamed::archive
