// SPDX-License-Identifier: Apache-2.0
//
// How to get from a frame of HotSpot's code to its caller, found in the code's own bytes: rows like those of a file.
// HotSpot writes no unwind information, but sets up and leaves frames by few sequences of instructions, the same in JDK
// 8 to 25 (macroAssembler_x86.cpp, x86_64.ad, c1_MacroAssembler_x86.cpp, templateInterpreterGenerator_x86.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unwinder/row.h"
#include "unwinder/rule_table.h"

namespace flamed::runtimes {

class HotSpotRows {
 public:
  /// Rules are entered into `rules`, which must outlive it.
  explicit HotSpotRows(unwinder::RuleTable& rules) : rules_(rules) {}

  /// A compiled method, or a stub of the second compiler. `frame_words`: with the return address. `stubs`: where code
  /// begins that is called with the frame below it. `frame_complete`: from here on the frame stands; negative: there is
  /// no such place. False: there is no known sequence that sets up a frame of this size.
  bool add_compiled(std::span<const std::byte> code, std::uint32_t frame_words, std::int64_t frame_complete);
  /// Code that may set up a frame by the frame pointer, once or several times.
  void add_stub(std::span<const std::byte> code);
  void add_adapter(std::span<const std::byte> code);
  /// `entries`: places in the code where parts of it begin that other code jumps to.
  void add_interpreter(std::span<const std::byte> code, std::span<const std::size_t> parts);
  /// Nothing is known of it.
  void add_unknown();

  /// Ascending by their offset from the code's first byte; the first one is at 0.
  [[nodiscard]] std::vector<unwinder::Row> take();

 private:
  void add(std::size_t offset, const unwinder::Rule& rule);

  unwinder::RuleTable& rules_;
  std::vector<unwinder::Row> rows_;
};

}  // namespace flamed::runtimes
