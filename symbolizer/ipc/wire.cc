// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/ipc/wire.h"

namespace flamed::symbolizer {

void WireWriter::block(const void* data, std::size_t bytes) {
  if (bytes < kLargeBytes) return append(data, bytes);
  pieces_.push_back({static_cast<const std::byte*>(data), bytes});
  size_ += bytes;
}

void WireWriter::append(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const auto* first = static_cast<const std::byte*>(data);
  copied_.insert(copied_.end(), first, first + bytes);
  if (pieces_.empty() || pieces_.back().outside != nullptr) pieces_.push_back({nullptr, 0});
  pieces_.back().size += bytes;
  size_ += bytes;
}

void WireWriter::copy(const WireWriter& other) {
  for (const std::span<const std::byte> piece : other.pieces()) append(piece.data(), piece.size());
}

std::vector<std::span<const std::byte>> WireWriter::pieces() const {
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(pieces_.size());
  std::span<const std::byte> copied(copied_);
  for (const Piece& piece : pieces_) {
    if (piece.outside != nullptr) {
      pieces.emplace_back(piece.outside, piece.size);
    } else {
      pieces.push_back(copied.first(piece.size));
      copied = copied.subspan(piece.size);
    }
  }
  return pieces;
}

std::vector<std::byte> WireWriter::bytes() const {
  std::vector<std::byte> all;
  all.reserve(size_);
  for (const std::span<const std::byte> piece : pieces()) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

Status MemorySource::read(std::span<std::byte> to) {
  if (to.size() > left_.size()) return Error("the bytes end too early");
  std::copy_n(left_.begin(), to.size(), to.begin());
  left_ = left_.subspan(to.size());
  return {};
}

bool WireReader::take(void* to, std::size_t bytes) {
  if (source_error_ || damage_ != nullptr) return false;
  if (bytes > left_) return damaged("it ends too early");
  if (Status read = source_.read({static_cast<std::byte*>(to), bytes}); !read.ok()) {
    source_error_ = read.error();
    return false;
  }
  left_ -= bytes;
  return true;
}

bool WireReader::flag(bool& value) {
  std::uint8_t byte = 0;
  if (!number(byte)) return false;
  if (byte > 1) return damaged("a flag is neither 0 nor 1");
  value = byte == 1;
  return true;
}

bool WireReader::text(std::string& text, std::size_t max_bytes) {
  std::uint64_t size = 0;
  if (!number(size)) return false;
  if (size > max_bytes || size > left_) return damaged("a text is too long");
  return fill(text, static_cast<std::size_t>(size));
}

bool WireReader::damaged(const char* what) {
  if (damage_ == nullptr && !source_error_) damage_ = what;
  return false;
}

bool WireReader::finished() {
  if (source_error_ || damage_ != nullptr) return false;
  return left_ == 0 || damaged("it is longer than its contents");
}

}  // namespace flamed::symbolizer
