// SPDX-License-Identifier: Apache-2.0
//
// FakeUnwindMaps: the unwind tables in plain memory, and what a walk finds in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "bpf/walk/unwind_search.h"
#include "daemon/unwind/rule_look_up.h"
#include "daemon/unwind/unwind_maps.h"
#include "unwinder/rule.h"

namespace flamed::test {

class FakeUnwindMaps final : public daemon::UnwindMaps {
 public:
  FakeUnwindMaps()
      : mappings_(std::size_t{FLAMED_MAPPING_BLOCKS} * FLAMED_BLOCK_MAPPINGS),
        modules_(FLAMED_MAX_MODULES),
        pages_(FLAMED_MAX_PAGES),
        rules_(FLAMED_MAX_RULES) {}

  [[nodiscard]] std::span<flamed_mapping> mappings() override { return mappings_; }
  [[nodiscard]] std::span<flamed_unwind_module> modules() override { return modules_; }
  [[nodiscard]] std::span<flamed_unwind_page> pages() override { return pages_; }
  [[nodiscard]] std::span<flamed_unwind_rule> rules() override { return rules_; }
  Result<std::span<std::uint32_t>> slab(std::uint32_t index) override {
    const InSlabs in_slabs(*this);
    const auto found = slabs_.find(index);
    if (found != slabs_.end()) return std::span<std::uint32_t>(found->second);
    if (slabs_.size() >= most_slabs) return Error("no memory for a slab");
    return std::span<std::uint32_t>(slabs_[index] = std::vector<std::uint32_t>(FLAMED_SLAB_ROWS));
  }
  void drop_slab(std::uint32_t index) override {
    const InSlabs in_slabs(*this);
    slabs_.erase(index);
  }
  [[nodiscard]] std::span<const std::uint32_t> find_slab(std::uint32_t index) override {
    const auto found = slabs_.find(index);
    return found == slabs_.end() ? std::span<const std::uint32_t>() : found->second;
  }
  Status put_process(std::uint32_t tgid, const flamed_process& process) override {
    if (processes.count(tgid) == 0 && processes.size() >= most_processes) return Error("the process table is full");
    processes[tgid] = process;
    return {};
  }
  void remove_process(std::uint32_t tgid) override { processes.erase(tgid); }

  /// What a walk finds at an address of a process, or why it finds nothing.
  enum class Found : std::uint8_t { kRule, kNoProcess, kNoTables, kNoMapping, kNoRows, kPending };
  struct LookUp {
    Found found = Found::kNoProcess;
    unwinder::Rule rule;
    std::uint32_t module = FLAMED_NO_MODULE;
  };
  [[nodiscard]] LookUp look_up(std::uint32_t tgid, std::uint64_t address) {
    const auto process = processes.find(tgid);
    if (process == processes.end()) return {};
    const flamed_process& tables = process->second;
    if (tables.count == 0) return {Found::kNoTables, {}, FLAMED_NO_MODULE};
    const flamed_mapping* block = &mappings_[std::size_t{tables.block} * FLAMED_BLOCK_MAPPINGS];
    const flamed_mapping& mapping = block[find_mapping(block, tables.first, tables.count, address)];
    if (address < mapping.start || address >= mapping.end) return {Found::kNoMapping, {}, FLAMED_NO_MODULE};
    if (mapping.module == FLAMED_NO_MODULE) return {Found::kNoRows, {}, mapping.module};
    const unwinder::Code code =
        daemon::look_up_rule(*this, mapping.module, address - mapping.start + mapping.file_offset);
    using Is = unwinder::Code::Is;
    const Found found = code.is == Is::kRuled     ? Found::kRule
                        : code.is == Is::kPending ? Found::kPending
                                                  : Found::kNoRows;
    return {found, code.rule, mapping.module};
  }

  std::unordered_map<std::uint32_t, flamed_process> processes;
  std::size_t most_processes = FLAMED_MAX_PROCESSES;
  std::size_t most_slabs = FLAMED_MAX_SLABS;
  [[nodiscard]] std::size_t slabs() const { return slabs_.size(); }
  /// Did two threads make or drop slabs at the same time?
  [[nodiscard]] bool have_met_in_slabs() const { return have_met_in_slabs_; }

  /// The module that a mapping of the process names, as the kernel program marks it as met.
  flamed_unwind_module& module_at(std::uint32_t tgid, std::uint64_t address) {
    return modules_.at(look_up(tgid, address).module);
  }

 private:
  /// A thread that makes or drops a slab. Others get a chance to do so, too.
  class InSlabs {
   public:
    explicit InSlabs(FakeUnwindMaps& maps) : maps_(maps) {
      if (maps_.in_slabs_++ != 0) maps_.have_met_in_slabs_ = true;
      std::this_thread::yield();
    }
    ~InSlabs() { --maps_.in_slabs_; }
    InSlabs(const InSlabs&) = delete;
    InSlabs& operator=(const InSlabs&) = delete;

   private:
    FakeUnwindMaps& maps_;
  };

  std::atomic<int> in_slabs_ = 0;
  std::atomic<bool> have_met_in_slabs_ = false;
  std::vector<flamed_mapping> mappings_;
  std::vector<flamed_unwind_module> modules_;
  std::vector<flamed_unwind_page> pages_;
  std::vector<flamed_unwind_rule> rules_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> slabs_;
};

}  // namespace flamed::test
