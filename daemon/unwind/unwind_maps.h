// SPDX-License-Identifier: Apache-2.0
//
// UnwindMaps: the memory of the tables in bpf/unwind_tables.h, as the daemon writes it. The real ones are BPF maps;
// tests use plain memory.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "bpf/unwind_tables.h"

namespace flamed::daemon {

/// One thread at a time creates, writes and drops slabs; other threads may use the other parts meanwhile, each part by
/// one at a time.
class UnwindMaps {
 public:
  virtual ~UnwindMaps() = default;

  /// All mapping blocks, back to back: FLAMED_MAPPING_BLOCKS × FLAMED_BLOCK_MAPPINGS.
  [[nodiscard]] virtual std::span<flamed_mapping> mappings() = 0;
  [[nodiscard]] virtual std::span<flamed_unwind_module> modules() = 0;
  [[nodiscard]] virtual std::span<flamed_unwind_page> pages() = 0;
  [[nodiscard]] virtual std::span<flamed_unwind_rule> rules() = 0;

  /// The rows of a slab, FLAMED_SLAB_ROWS of them. The first call allocates its memory ...
  virtual Result<std::span<std::uint32_t>> slab(std::uint32_t index) = 0;
  /// ... and this frees it.
  virtual void drop_slab(std::uint32_t index) = 0;
  /// The rows of a slab that was made and not freed, else empty. Any thread.
  [[nodiscard]] virtual std::span<const std::uint32_t> find_slab(std::uint32_t index) = 0;

  virtual Status put_process(std::uint32_t tgid, const flamed_process& process) = 0;
  virtual void remove_process(std::uint32_t tgid) = 0;
};

}  // namespace flamed::daemon
