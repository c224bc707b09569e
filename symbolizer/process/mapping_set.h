// SPDX-License-Identifier: Apache-2.0
//
// MappingSet: what one address space has mapped as code.
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
  /// Something else was mapped at some of these addresses before: only the order of events tells which was when.
  bool contested = false;
  /// When to ask again for the module's file; not part of what a mapping is, and changed through const references.
  mutable std::int64_t ask_again_ns = 0;

  /// Do both show the same, wherever both are?
  [[nodiscard]] bool continues(const Mapping& other) const {
    return module == other.module && file_offset - start == other.file_offset - other.start;
  }
  [[nodiscard]] Frame frame_at(std::uint64_t address) const { return {module, address - start + file_offset}; }
  friend constexpr bool operator==(const Mapping& a, const Mapping& b) {
    return a.start == b.start && a.end == b.end && a.file_offset == b.file_offset && a.module == b.module;
  }
};

/// Sorted, without overlaps. The kernel does not tell when something is unmapped: a mapping stays until another one
/// takes its place.
class MappingSet {
 public:
  /// Puts `mapping` in; what it covers of older ones is cut away.
  void insert(const Mapping& mapping);
  /// Marks as contested what `before`, an earlier state of the same address space, shows differently.
  void contest(const MappingSet& before);
  /// Whatever is mapped of `module` is another one's.
  void replace_module(ModuleId module, ModuleId other);
  /// Null when nothing is mapped there.
  [[nodiscard]] const Mapping* find(std::uint64_t address) const;
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_; }

 private:
  std::vector<Mapping> mappings_;
};

}  // namespace flamed::symbolizer
