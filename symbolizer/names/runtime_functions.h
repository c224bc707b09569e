// SPDX-License-Identifier: Apache-2.0
//
// RuntimeFunctions: the functions of managed runtimes that stored stacks have, as texts. They can be read only while
// their process runs, so they are kept here, where all processes share them: a program that runs two hundred times has
// one function each. Frames in kRuntimeModule have their numbers. Any thread.
//
// Texts are bounded in bytes. A user may add as long as he has less than what is left for all: so nobody can keep
// others from adding theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/identity.h"
#include "base/keyed_hash.h"
#include "symbolizer/model/symbol.h"

namespace flamed::symbolizer {

class RuntimeFunctions {
 public:
  static constexpr std::size_t kDefaultBudgetBytes = std::size_t{32} << 20;
  explicit RuntimeFunctions(std::size_t budget_bytes = kDefaultBudgetBytes) : budget_bytes_(budget_bytes) {}

  /// The number of a function of the runtime whose frames are of this kind. `name` and `file` are any bytes. Empty:
  /// there is no room for it.
  std::optional<std::uint32_t> enter(SymbolKind kind, std::string_view name, std::string_view file, std::uint32_t user);
  /// The number of such a function without a name, for this reason.
  std::optional<std::uint32_t> enter_unnamed(SymbolKind kind, std::string_view reason, std::uint32_t user);
  /// The number of a function that is shown as "[name]", for this reason.
  std::optional<std::uint32_t> enter_unnamed(std::string_view name, std::string_view reason, std::uint32_t user);
  /// Where there is no room even for that.
  static constexpr std::uint32_t kNoRoom = 0;

  static constexpr std::uint32_t kMostLine = (1U << 24) - 1;
  static constexpr Frame frame_of(std::uint32_t function, std::uint32_t line) {
    return {kRuntimeModule, std::uint64_t{function} << 24 | (line < kMostLine ? line : 0)};
  }
  /// The name of such a frame.
  [[nodiscard]] SymbolChainPtr name(const Frame& frame) const;

  /// Forgets functions that none of the frames has. A number is never used again.
  void retain(std::span<const Frame> frames);
  /// Is so much in use that it is time to call retain()?
  [[nodiscard]] bool is_crowded() const;

  struct Stats {
    std::size_t functions = 0;
    std::size_t bytes = 0;
    std::uint64_t refused = 0;  ///< for want of room
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Function {
    Symbol symbol;
    std::string key;
    std::uint32_t user = 0;
    std::size_t bytes = 0;
  };
  std::optional<std::uint32_t> enter_symbol(Symbol symbol, std::uint32_t user);
  [[nodiscard]] std::size_t held_by(std::uint32_t user) const;

  const std::size_t budget_bytes_;
  mutable std::shared_mutex mutex_;  ///< guards the members below
  std::unordered_map<std::uint32_t, Function> functions_;
  std::uint32_t last_ = kNoRoom;
  std::unordered_map<std::string_view, std::uint32_t, KeyedTextHash> numbers_;  ///< by Function::key
  std::unordered_map<std::uint32_t, std::size_t> bytes_of_;                     ///< by user
  std::size_t bytes_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace flamed::symbolizer
