// SPDX-License-Identifier: Apache-2.0
//
// The list of texts of a block: each text once, in two columns. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "archive/codec/block.h"

namespace flamed::archive {

class TextWriter {
 public:
  /// Columns of the sizes, and of the texts, one after the other.
  TextWriter(Column& sizes, Column& texts) : sizes_(sizes), texts_(texts) {}
  /// The text's number.
  std::uint64_t operator()(std::string_view text) {
    const auto [place, is_new] = numbers_.try_emplace(std::string(text), numbers_.size());
    if (is_new) {
      sizes_.put(text.size());
      texts_.put_text(text);
    }
    return place->second;
  }
  [[nodiscard]] std::size_t count() const { return numbers_.size(); }

 private:
  Column& sizes_;
  Column& texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace flamed::archive
