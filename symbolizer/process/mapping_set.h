// SPDX-License-Identifier: Apache-2.0
//
// MappingSet: the code mappings of one address space.
#pragma once

#include <cstdint>
#include <vector>

#include "base/identity.h"

namespace flamed::symbolizer {

/// [start, end) of a process's addresses, from `file_offset` of `module` on. For memory without a file, file_offset is
/// equal to start, so that address - start + file_offset is the address itself.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  ModuleId module;
  /// Some of these addresses had another mapping before: only the order of events says which was mapped when.
  bool contested = false;
  /// When to request the module's file again; not part of the mapping's value, and changed through const references.
  mutable std::int64_t ask_again_ns = 0;

  /// Do both map the same bytes where they overlap?
  [[nodiscard]] bool continues(const Mapping& other) const {
    return module == other.module && file_offset - start == other.file_offset - other.start;
  }
  [[nodiscard]] Frame frame_at(std::uint64_t address) const { return {module, address - start + file_offset}; }
  friend constexpr bool operator==(const Mapping& a, const Mapping& b) {
    return a.start == b.start && a.end == b.end && a.file_offset == b.file_offset && a.module == b.module;
  }
};

/// Sorted, without overlaps. The kernel does not report unmapping: a mapping stays until another one replaces it.
class MappingSet {
 public:
  /// Adds `mapping`, and cuts older ones where it covers them.
  void insert(const Mapping& mapping);
  /// Marks mappings as contested that differ from `before`, an earlier state of the same address space. If the program
  /// has ever put one mapping in another's place, also those where `before` had none: others may have been there since.
  void contest(const MappingSet& before);
  /// Replaces `module` in all mappings by `other`.
  void replace_module(ModuleId module, ModuleId other);
  /// Null if nothing is mapped there.
  [[nodiscard]] const Mapping* find(std::uint64_t address) const;
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_; }

 private:
  std::vector<Mapping> mappings_;
  bool has_contested_ = false;  ///< now, or at an earlier time
};

}  // namespace flamed::symbolizer
