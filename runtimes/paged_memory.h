// SPDX-License-Identifier: Apache-2.0
//
// PagedMemory: copies pieces of another memory, each of them once, so that many short values need few reads. A value is
// as old as the first reading of its piece.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "runtimes/remote_memory.h"

namespace flamed::runtimes {

class PagedMemory final : public RemoteMemory {
 public:
  /// Divides the size of a page, so that a piece can be read as a whole or not at all. With whole pages the worker's
  /// memory grew and shrank by them with each request, which took as long as the reads that they save.
  static constexpr std::size_t kPieceBytes = 1024;

  /// `memory` must outlive it.
  explicit PagedMemory(RemoteMemory& memory) : memory_(memory) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    while (!to.empty()) {
      const Piece* const piece = to.size() <= kMostBytes ? piece_at(address / kPieceBytes) : nullptr;
      if (piece == nullptr) return memory_.read(address, to);
      const std::size_t into = address % kPieceBytes;
      const std::size_t count = std::min(to.size(), kPieceBytes - into);
      std::copy_n(piece->begin() + static_cast<std::ptrdiff_t>(into), count, to.begin());
      address += count;
      to = to.subspan(count);
    }
    return true;
  }
  [[nodiscard]] std::size_t extent(std::uint64_t address, std::size_t most) const override {
    return memory_.extent(address, most);
  }

 private:
  using Piece = std::array<std::byte, kPieceBytes>;
  static constexpr std::size_t kMostPieces = 16'384;
  /// Longer values are read as they are.
  static constexpr std::size_t kMostBytes = 2 * kPieceBytes;

  /// Null: it can't be read as a whole, or there are too many.
  const Piece* piece_at(std::uint64_t number) {
    if (last_ != nullptr && last_number_ == number) return last_;
    const auto found = pieces_.find(number);
    if (found != pieces_.end()) {
      last_number_ = number;
      return last_ = found->second.get();
    }
    if (pieces_.size() >= kMostPieces) return nullptr;
    auto piece = std::make_unique_for_overwrite<Piece>();
    if (!memory_.read(number * kPieceBytes, *piece)) return nullptr;
    last_number_ = number;
    return last_ = pieces_.emplace(number, std::move(piece)).first->second.get();
  }

  RemoteMemory& memory_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Piece>> pieces_;
  std::uint64_t last_number_ = 0;
  const Piece* last_ = nullptr;  ///< null: none was read yet
};

}  // namespace flamed::runtimes
