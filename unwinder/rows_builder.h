// SPDX-License-Identifier: Apache-2.0
//
// build_rows: unwind information in, rows out. Pure; memory and time are linear in the size of the input, and limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "unwinder/architecture.h"
#include "unwinder/eh_frame.h"
#include "unwinder/row.h"

namespace flamed::unwinder {

/// Of rows in files. To be raised whenever the same input gives other rows, or a Row or Rule gets another layout;
/// rows_builder_test.cc notices.
inline constexpr std::uint32_t kRowsEdition = 3;

/// A stretch of virtual addresses.
struct AddressRange {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

/// Code with a rule that the unwind information does not have.
struct RuledCode {
  AddressRange range;
  Rule rule;
};

struct BuildInput {
  Architecture architecture = Architecture::kX86_64;
  /// All of a file's unwind information: .eh_frame, .debug_frame, or both (Go programs with C in them: each describes
  /// its own part). If both describe an address, the function that begins first is used; if they begin at the same
  /// address, the earlier section's. The same holds within a section, as in the linkers' search table for functions
  /// that begin at the same address.
  std::span<const FrameSection> sections;
  /// Executable ranges, sorted by address, without overlaps, within 4 GiB (code refers to code by 32-bit distances).
  std::span<const AddressRange> code;
  /// A gap of at most this many bytes between two functions is taken for alignment padding, where nothing runs, and
  /// gets no row: the first function's last rule continues. 0: every gap gets a kNoneRule. 15 saves 13 % of the rows of
  /// a Debian 12 system; it would be wrong for code of up to 15 bytes without unwind information between two functions.
  std::uint32_t max_padding = 0;
  /// These rules replace those of the unwind information. That of a signal frame (CfaKind::kSignalFrame) holds from one
  /// byte before the code on: nothing calls it, a handler's return address is its first byte, and the look-up uses the
  /// byte before that. glibc's own description begins there, too.
  std::span<const RuledCode> ruled_code{};
};

struct BuildLimits {
  std::uint64_t max_section_bytes = std::uint64_t{512} << 20;
  /// A function takes 20 bytes while building.
  std::size_t max_functions = 4'000'000;
  /// A row takes 8 bytes.
  std::size_t max_rows = 16'000'000;
  /// Different rules in one file.
  std::size_t max_rules = 16'384;
  /// CPU time of the calling thread.
  std::uint64_t max_cpu_ns = 20'000'000'000;
};

/// Missing unwind information is not an error (the result has no rows); exceeding a limit is. Unusable records are
/// counted in the result's stats.
Result<UnwindRows> build_rows(const BuildInput& input, const BuildLimits& limits = {});

}  // namespace flamed::unwinder
