// SPDX-License-Identifier: Apache-2.0
//
// The records are those of DWARF 3, section 6.4.1.
#include "symbolizer/go/go_frames.h"

#include <dwarf.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace flamed::symbolizer {
namespace {

constexpr std::uint8_t kRbp = 6;
constexpr std::uint8_t kRsp = 7;
constexpr std::uint8_t kRip = 16;
constexpr std::size_t kWord = 8;
/// Unless a function is assembly that does otherwise, it saves the frame pointer right below the return address.
constexpr std::int32_t kFramePointerBytes = 8;
/// Between functions.
constexpr std::uint64_t kMaxPadding = 63;

class Section {
 public:
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

  void byte(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  template <typename T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(&bytes_[at], &value, sizeof(value));
  }
  void uleb(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  void text(std::string_view text) {
    for (const char letter : text) byte(static_cast<std::uint8_t>(letter));
    byte(0);
  }

  /// Returns the offset of the record, which lasts until end_record().
  std::size_t begin_record() {
    const std::size_t at = bytes_.size();
    number(std::uint32_t{0});
    return at;
  }
  void end_record(std::size_t at) {
    while (bytes_.size() % kWord != sizeof(std::uint32_t)) byte(DW_CFA_nop);
    const auto length = static_cast<std::uint32_t>(bytes_.size() - at - sizeof(std::uint32_t));
    std::memcpy(&bytes_[at], &length, sizeof(length));
  }

  /// A CIE with a function's state at its entry. Returns its offset.
  std::uint32_t cie(std::string_view augmentation) {
    const std::size_t at = begin_record();
    number(std::uint32_t{0xffffffff});
    byte(3);
    text(augmentation);
    uleb(1);
    byte(0x80 - kWord);  // data alignment: -8
    uleb(kRip);
    if (!augmentation.empty()) uleb(0);
    byte(DW_CFA_def_cfa);
    uleb(kRsp);
    uleb(kWord);
    byte(DW_CFA_offset | kRip);
    uleb(1);
    end_record(at);
    return static_cast<std::uint32_t>(at);
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> go_frames(const GoLineTable& table, std::size_t limit_bytes) {
  Section to;
  const std::uint32_t ordinary = to.cie("");
  const std::uint32_t interrupted = to.cie("zS");
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::vector<GoLineTable::StackDepth> depths = table.stack_depths(i);
    if (depths.empty()) continue;
    const GoLineTable::Function function = table.function(i);
    // A signal handler makes interrupted code look as if it had called this function.
    const bool is_preemption = function.name == "runtime.asyncPreempt";
    const std::size_t at = to.begin_record();
    to.number(is_preemption ? interrupted : ordinary);
    to.number(function.entry);
    const std::uint64_t size = function.end - function.entry;
    const std::uint64_t known = depths.back().distance + depths.back().size;
    to.number(size - known <= kMaxPadding ? size : known);
    if (is_preemption) to.uleb(0);
    bool is_fp_saved = false;
    std::uint64_t before = 0;
    for (const GoLineTable::StackDepth& depth : depths) {
      if (depth.distance != 0) {
        to.byte(DW_CFA_advance_loc4);
        to.number(static_cast<std::uint32_t>(depth.distance - before));
        before = depth.distance;
      }
      to.byte(DW_CFA_def_cfa_offset);
      to.uleb(static_cast<std::uint64_t>(depth.bytes) + kWord);
      if ((depth.bytes >= kFramePointerBytes) == is_fp_saved) continue;
      is_fp_saved = !is_fp_saved;
      to.byte(is_fp_saved ? DW_CFA_offset | kRbp : DW_CFA_same_value);
      to.uleb(is_fp_saved ? 2 : kRbp);
    }
    to.end_record(at);
    if (to.size() > limit_bytes) return {};
  }
  return to.take();
}

}  // namespace flamed::symbolizer
