// SPDX-License-Identifier: Apache-2.0
//
// BpfUnwindMaps: the unwind tables in the BPF maps of the loaded sampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "base/mapped_memory.h"
#include "bpf/linked_layout.h"
#include "daemon/unwind/known_programs.h"
#include "daemon/unwind/unwind_maps.h"

namespace flamed::daemon {

/// The maps' descriptors and a variable of the program. The sampler owns them.
struct UnwindMapFds {
  int processes = -1;
  int mapping_blocks = -1;
  int modules = -1;
  int pages = -1;
  int rules = -1;
  int slabs = -1;    ///< the array of maps
  int layouts = -1;  ///< of runtimes' frames
  int slot_layouts = -1;
  int known_programs = -1;
  std::uint32_t* processes_edition = nullptr;  ///< the program's variable, incremented after each change of `processes`
};

class BpfUnwindMaps final : public UnwindMaps, public KnownPrograms::Table {
 public:
  /// Maps the arrays into our memory. The sampler that owns the descriptors must outlive it.
  static Result<std::unique_ptr<BpfUnwindMaps>> open(const UnwindMapFds& fds);
  ~BpfUnwindMaps() override;

  [[nodiscard]] std::span<flamed_mapping> mappings() override { return mappings_.as<flamed_mapping>(); }
  [[nodiscard]] std::span<flamed_unwind_module> modules() override { return modules_.as<flamed_unwind_module>(); }
  [[nodiscard]] std::span<flamed_unwind_page> pages() override { return pages_.as<flamed_unwind_page>(); }
  [[nodiscard]] std::span<flamed_unwind_rule> rules() override { return rules_.as<flamed_unwind_rule>(); }
  Result<std::span<std::uint32_t>> slab(std::uint32_t index) override;
  void drop_slab(std::uint32_t index) override;
  [[nodiscard]] std::span<const std::uint32_t> find_slab(std::uint32_t index) override;
  /// For flamed_process.runtime.
  Status put_layout(std::uint32_t number, const flamed_linked_layout& layout);
  Status put_layout(std::uint32_t number, const flamed_slot_layout& layout);
  Status put_program(const flamed_program_file& file, const flamed_known_program& program) override;
  void remove_program(const flamed_program_file& file) override;
  Status put_process(std::uint32_t tgid, const flamed_process& process) override;
  void remove_process(std::uint32_t tgid) override;

 private:
  explicit BpfUnwindMaps(const UnwindMapFds& fds) : fds_(fds) {}
  void count_change() { __atomic_fetch_add(fds_.processes_edition, 1, __ATOMIC_RELEASE); }

  const UnwindMapFds fds_;
  MappedMemory mappings_;  ///< this and the following: one array map each
  MappedMemory modules_;
  MappedMemory pages_;
  MappedMemory rules_;
  std::mutex mutex_;  ///< guards the table of slabs, not their content
  std::unordered_map<std::uint32_t, MappedMemory>
      slabs_;  ///< the array of maps and our mapping keep them alive, without a descriptor
};

}  // namespace flamed::daemon
