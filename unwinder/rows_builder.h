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

/// A stretch of virtual addresses.
struct AddressRange {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

struct BuildInput {
  Architecture architecture = Architecture::kX86_64;
  /// All of a file's unwind information: .eh_frame, .debug_frame, or both (Go programs with C in them: each describes
  /// its own part). Where both describe an address the function that begins first wins; of two that begin at the same
  /// address, the earlier section's. That is also the order within a section, and what the linkers' search table does
  /// for functions that begin at the same address.
  std::span<const FrameSection> sections;
  /// What can be executed, sorted by address, without overlaps, within 4 GiB (code refers to code by 32-bit distances).
  std::span<const AddressRange> code;
  /// A gap of at most this many bytes between two functions is taken for the padding that aligns the second one, where
  /// nothing runs, and gets no row of its own: the first one's last rule goes on. 0: every gap gets its kNoneRule. 15
  /// saves 13 % of the rows of a Debian 12 system; what it could get wrong is code without unwind information of up
  /// to 15 bytes between two functions with it.
  std::uint32_t max_padding = 0;
  /// What signal handlers return to, of which the unwind information does not say so. Its rule is
  /// signal_frame_rule(), from one byte before it on: nothing calls it, the return address of a handler is its first
  /// byte, and the look-up is one before that. glibc lets its own description begin there, too.
  std::span<const AddressRange> signal_returns{};
};

struct BuildLimits {
  std::uint64_t max_section_bytes = std::uint64_t{512} << 20;
  /// 20 bytes each while building.
  std::size_t max_functions = 4'000'000;
  /// 8 bytes each.
  std::size_t max_rows = 16'000'000;
  /// Different rules in one file.
  std::size_t max_rules = 16'384;
  /// CPU time of the calling thread.
  std::uint64_t max_cpu_ns = 20'000'000'000;
};

/// No unwind information is no error (no rows are); exceeding a limit is. Records that can't be used are counted in the
/// result's stats.
Result<UnwindRows> build_rows(const BuildInput& input, const BuildLimits& limits = {});

}  // namespace flamed::unwinder
