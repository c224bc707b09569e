// SPDX-License-Identifier: Apache-2.0
//
// KeptNames: the names of stored addresses in a module whose file is closed, since no process has it mapped any more.
// An immutable value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "symbolizer/model/symbol.h"

namespace flamed::symbolizer {

class KeptNames {
 public:
  struct Named {
    std::uint64_t offset = 0;
    SymbolChainPtr chain;
  };

  KeptNames() = default;
  /// In any order, each offset once. Equal chains are merged.
  explicit KeptNames(std::vector<Named> names);

  /// Null: the address was not named.
  [[nodiscard]] SymbolChainPtr find(std::uint64_t offset) const;
  /// In the order of their offsets.
  [[nodiscard]] const std::vector<Named>& names() const { return names_; }
  /// Its memory; shared chains are counted, too.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::vector<Named> names_;
  std::size_t bytes_ = 0;
};
using KeptNamesPtr = std::shared_ptr<const KeptNames>;

}  // namespace flamed::symbolizer
