// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "runtimes/python/line_table.h"
#include "runtimes/utf8.h"

namespace flamed::runtimes {
namespace {

/// A code object's part that is read at once: all members that layouts name.
constexpr std::size_t kMostObjectBytes = 256;

/// An object as it was copied.
class Object {
 public:
  Object(std::uint64_t address, std::size_t bytes) : address_(address), size_(std::min(bytes, kMostObjectBytes)) {}

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::span<std::byte> bytes() { return std::span(bytes_).first(size_); }
  /// 0 if it lies outside.
  template <typename T>
  [[nodiscard]] T number(std::size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= size_) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

 private:
  std::uint64_t address_;
  std::size_t size_;
  std::array<std::byte, kMostObjectBytes> bytes_{};
};

class Reader {
 public:
  Reader(RemoteMemory& memory, const PythonObjects& objects, std::uint64_t base)
      : memory_(memory), objects_(objects), base_(base) {}

  Result<RuntimeFunction> function(std::uint64_t address) {
    const std::size_t bytes = 8 + std::max({objects_.name, objects_.file, objects_.lines, objects_.first_line});
    const std::optional<Object> code = object(address, bytes, objects_.code_type);
    if (!code) return Error("no code object");
    RuntimeFunction function;
    std::optional<std::string> name = text(code->number<std::uint64_t>(objects_.name));
    std::optional<std::string> file = text(code->number<std::uint64_t>(objects_.file));
    if (!name || name->empty()) return Error("a code object without a name");
    if (!file) return Error("a code object without a file");
    function.name = *std::move(name);
    function.file = *std::move(file);
    const auto first_line = code->number<std::int32_t>(objects_.first_line);
    function.first_line = first_line < 0 ? 0 : static_cast<std::uint32_t>(first_line);
    const std::optional<std::vector<std::byte>> lines = content(code->number<std::uint64_t>(objects_.lines));
    if (!lines) return Error("a code object without lines");
    function.lines = read_line_table(objects_.lines_kind, *lines, function.first_line);
    return function;
  }

 private:
  /// The first bytes of an object, if it has this type.
  std::optional<Object> object(std::uint64_t address, std::size_t bytes, std::uint64_t type) {
    Object copy(address, bytes);
    if (!memory_.read(address, copy.bytes())) return std::nullopt;
    if (copy.number<std::uint64_t>(objects_.type) != base_ + type) return std::nullopt;
    return copy;
  }

  /// A string. Its characters follow its head (PEP 393), all of the same size.
  std::optional<std::string> text(std::uint64_t address) {
    constexpr std::uint32_t kIsCompact = 0x20;
    constexpr std::uint32_t kIsAscii = 0x40;
    const std::size_t bytes = 8 + std::max(objects_.string_length, objects_.string_state);
    const std::optional<Object> head = object(address, bytes, objects_.string_type);
    if (!head) return std::nullopt;
    const auto state = head->number<std::uint32_t>(objects_.string_state);
    const std::uint32_t character_bytes = state >> 2 & 7;
    const bool is_of_known_size = character_bytes == 1 || character_bytes == 2 || character_bytes == 4;
    if ((state & kIsCompact) == 0 || !is_of_known_size) return std::nullopt;
    const std::uint64_t length =
        std::min<std::uint64_t>(head->number<std::uint64_t>(objects_.string_length), kMostTextBytes);
    std::vector<std::byte> characters(static_cast<std::size_t>(length) * character_bytes);
    const std::uint64_t at = address + ((state & kIsAscii) != 0 ? objects_.ascii_text : objects_.other_text);
    if (!memory_.read(at, characters)) return std::nullopt;
    std::string text;
    for (std::size_t i = 0; i < characters.size(); i += character_bytes) {
      std::uint32_t point = 0;
      std::memcpy(&point, &characters[i], character_bytes);
      const std::size_t before = text.size();
      append_utf8(text, point);
      if (text.size() <= kMostTextBytes) continue;
      text.resize(before);
      break;
    }
    return text;
  }

  /// The line table in a bytes object, or its first entries, if it was copied without the rest.
  std::optional<std::vector<std::byte>> content(std::uint64_t address) {
    const std::optional<Object> head = object(address, 8U + objects_.bytes_length, objects_.bytes_type);
    if (!head) return std::nullopt;
    const std::uint64_t length =
        std::min<std::uint64_t>(head->number<std::uint64_t>(objects_.bytes_length), kMostLineTableBytes);
    const std::uint64_t at = address + objects_.bytes_text;
    std::vector<std::byte> bytes(memory_.extent(at, static_cast<std::size_t>(length)));
    if (!memory_.read(at, bytes)) return std::nullopt;
    if (bytes.size() < length && !end_with_whole_entry(objects_.lines_kind, bytes)) return std::nullopt;
    return bytes;
  }

  RemoteMemory& memory_;
  const PythonObjects& objects_;
  const std::uint64_t base_;
};

}  // namespace

Result<RuntimeFunction> read_python_function(RemoteMemory& memory, const PythonObjects& objects, std::uint64_t base,
                                             std::uint64_t code) {
  return Reader(memory, objects, base).function(code);
}

}  // namespace flamed::runtimes
