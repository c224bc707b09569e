// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/line_table.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace flamed::runtimes {
namespace {

/// Beyond any source file. Frames keep lines in 24 bits.
constexpr std::int64_t kMostLines = (1 << 24) - 1;
constexpr std::int64_t kNoLine = 0;

class Runs {
 public:
  explicit Runs(std::int64_t first_line) { runs_.push_back({0, in_bounds(first_line)}); }

  [[nodiscard]] bool is_full() const { return runs_.size() == kMostLineRuns; }

  /// From `first` on, which never falls.
  void add(std::uint64_t first, std::int64_t line) {
    if (first > UINT32_MAX || is_full()) return;
    const bool is_last = runs_.size() == kMostLineRuns - 1;
    const LineRun run{static_cast<std::uint32_t>(first), is_last ? 0 : in_bounds(line)};
    if (runs_.back().first == run.first) runs_.pop_back();
    if (runs_.empty() || runs_.back().line != run.line) runs_.push_back(run);
  }

  std::vector<LineRun> take() { return std::move(runs_); }

 private:
  static std::uint32_t in_bounds(std::int64_t line) {
    return line < 0 || line > kMostLines ? 0 : static_cast<std::uint32_t>(line);
  }

  std::vector<LineRun> runs_;
};

/// A sum that any table can't overflow.
std::int64_t plus(std::int64_t line, std::int64_t change) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  return std::clamp(line + std::clamp(change, -kFar, kFar), -kFar, kFar);
}

/// Pairs: bytes of code (unsigned), then the change of the line after them (signed).
void read_line_numbers(ByteReader bytes, std::int64_t line, Runs& runs) {
  std::uint64_t at = 0;
  while (bytes.left() >= 2 && !runs.is_full()) {
    at += bytes.u8();
    line = plus(line, static_cast<std::int8_t>(bytes.u8()));
    runs.add(at / 2, line);
  }
}

/// Pairs: bytes of code (unsigned), and the change of the line before them (signed); -128: they have no line.
void read_ranges(ByteReader bytes, std::int64_t line, Runs& runs) {
  constexpr std::int8_t kWithoutLine = -128;
  std::uint64_t at = 0;
  while (bytes.left() >= 2 && !runs.is_full()) {
    const std::uint8_t length = bytes.u8();
    const auto change = static_cast<std::int8_t>(bytes.u8());
    if (change != kWithoutLine) line = plus(line, change);
    if (length != 0) runs.add(at / 2, change == kWithoutLine ? kNoLine : line);
    at += length;
  }
  runs.add(at / 2, kNoLine);
}

/// Six bits a byte, the least significant first; 0x40: more follow.
std::uint64_t read_number(ByteReader& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 60; shift += 6) {
    const std::uint8_t byte = bytes.u8();
    value |= std::uint64_t{byte & 0x3fU} << shift;
    if ((byte & 0x40) == 0) break;
  }
  return value;
}

/// The sign is in the lowest bit.
std::int64_t read_signed_number(ByteReader& bytes) {
  const std::uint64_t value = read_number(bytes);
  const auto magnitude = static_cast<std::int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

/// Entries begin with a byte that has its highest bit set, and no other byte has: 4 bits of kind, 3 of instructions
/// less one. Columns follow.
void read_locations(ByteReader bytes, std::int64_t line, Runs& runs) {
  constexpr unsigned kOneLine0 = 10;  // up to 12: as many lines further
  constexpr unsigned kOneLine2 = 12;
  constexpr unsigned kWithoutColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kWithoutLine = 15;
  std::uint64_t at = 0;
  while (bytes.left() != 0 && !runs.is_full()) {
    const std::uint8_t head = bytes.u8();
    if ((head & 0x80) == 0) continue;
    const unsigned kind = head >> 3 & 15U;
    if (kind >= kOneLine0 && kind <= kOneLine2) line = plus(line, kind - kOneLine0);
    if (kind == kWithoutColumns || kind == kLong) line = plus(line, read_signed_number(bytes));
    runs.add(at, kind == kWithoutLine ? kNoLine : line);
    at += (head & 7U) + 1;
  }
  runs.add(at, kNoLine);
}

}  // namespace

bool end_with_whole_entry(PythonLines kind, std::vector<std::byte>& cut) {
  switch (kind) {
    case PythonLines::kLineNumbers:
      return false;
    case PythonLines::kRanges:
      cut.resize(cut.size() & ~std::size_t{1});
      return true;
    case PythonLines::kLocations: {
      const auto is_head = [](std::byte byte) { return (byte & std::byte{0x80}) != std::byte{0}; };
      const auto last = std::find_if(cut.rbegin(), cut.rend(), is_head);
      cut.resize(last == cut.rend() ? 0 : static_cast<std::size_t>(cut.rend() - last) - 1);
      return true;
    }
  }
  return false;
}

std::vector<LineRun> read_line_table(PythonLines kind, std::span<const std::byte> bytes, std::uint32_t first_line) {
  Runs runs(first_line);
  switch (kind) {
    case PythonLines::kLineNumbers:
      read_line_numbers(ByteReader(bytes), first_line, runs);
      break;
    case PythonLines::kRanges:
      read_ranges(ByteReader(bytes), first_line, runs);
      break;
    case PythonLines::kLocations:
      read_locations(ByteReader(bytes), first_line, runs);
      break;
  }
  return runs.take();
}

}  // namespace flamed::runtimes
