// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/thread_state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

namespace flamed::runtimes {
namespace {

constexpr std::size_t kMostCodeBytes = 96;

/// The bytes of a function, and the place in them.
class Code {
 public:
  static std::optional<Code> of(ProgramImage& image, std::string_view function) {
    const std::optional<ProgramImage::Symbol> symbol = image.symbol(function);
    if (!symbol) return std::nullopt;
    Code code;
    code.address_ = symbol->address;
    const std::size_t most = symbol->size == 0 ? kMostCodeBytes : std::min<std::size_t>(symbol->size, kMostCodeBytes);
    code.size_ = most;
    if (!image.read(code.address_, std::span(code.bytes_).first(most))) return std::nullopt;
    return code;
  }

  [[nodiscard]] bool is_over() const { return at_ >= size_; }
  void skip(std::size_t bytes) { at_ += bytes; }

  /// Skips these bytes if they are next.
  bool take(std::initializer_list<std::uint8_t> bytes) {
    if (bytes.size() > size_ - at_) return false;
    if (!std::equal(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_),
                    [](std::uint8_t wanted, std::byte found) { return std::byte{wanted} == found; }))
      return false;
    at_ += bytes.size();
    return true;
  }
  /// The same if a number of 32 bits follows; `bytes` after it are skipped as well.
  bool take(std::initializer_list<std::uint8_t> bytes, std::int32_t& number) {
    if (bytes.size() + sizeof(number) > size_ - at_ || !take(bytes)) return false;
    std::memcpy(&number, bytes_.data() + at_, sizeof(number));
    at_ += sizeof(number);
    return true;
  }
  std::int8_t take_byte() { return is_over() ? std::int8_t{0} : static_cast<std::int8_t>(bytes_[at_++]); }

  /// The address `distance` bytes behind the instruction that was just taken.
  [[nodiscard]] std::uint64_t from_here(std::int32_t distance) const {
    return address_ + at_ + static_cast<std::uint64_t>(std::int64_t{distance});
  }

 private:
  std::uint64_t address_ = 0;
  std::array<std::byte, kMostCodeBytes> bytes_{};
  std::size_t size_ = 0;
  std::size_t at_ = 0;
};

/// endbr64; push %rbp; mov %rsp,%rbp; pop %rbp; sub $8,%rsp; add $8,%rsp; push %rax; pop %rcx
bool take_frame(Code& code) {
  return code.take({0xf3, 0x0f, 0x1e, 0xfa}) || code.take({0x55}) || code.take({0x48, 0x89, 0xe5}) ||
         code.take({0x5d}) || code.take({0x48, 0x83, 0xec, 0x08}) || code.take({0x48, 0x83, 0xc4, 0x08}) ||
         code.take({0x50}) || code.take({0x59});
}

}  // namespace

std::optional<ThreadStatePlace> returned_thread_local(ProgramImage& image, std::string_view function) {
  using Kind = ThreadStatePlace::Kind;
  std::optional<Code> code = Code::of(image, function);
  if (!code) return std::nullopt;
  // What is in %rax, if anything: an address of a thread-local variable, or what it holds.
  std::optional<ThreadStatePlace> place;
  bool is_value = false;
  std::uint64_t argument = 0;
  std::int32_t number = 0;
  while (!code->is_over()) {
    if (take_frame(*code)) continue;
    if (code->take({0xc3})) return is_value ? place : std::nullopt;  // ret
    if (is_value) return std::nullopt;
    if (code->take({0x64, 0x48, 0x8b, 0x04, 0x25}, number)) {  // mov %fs:number,%rax
      if (place) return std::nullopt;
      place = ThreadStatePlace{Kind::kThreadLocal, number, 0};
      is_value = number != 0;  // at %fs:0 is the thread pointer itself
    } else if (code->take({0x66, 0x48, 0x8d, 0x3d}, number) || code->take({0x48, 0x8d, 0x3d}, number)) {
      argument = code->from_here(number);  // lea number(%rip),%rdi
    } else if (code->take({0x66, 0x66, 0x48, 0xe8}, number) || code->take({0xe8}, number) ||
               code->take({0x66, 0x48, 0xff, 0x15}, number) || code->take({0xff, 0x15}, number)) {
      // call __tls_get_addr
      if (place || argument > UINT64_MAX - 8 || !image.is_block_number(argument)) return std::nullopt;
      const std::optional<std::int64_t> offset = read_number<std::int64_t>(image, argument + 8);
      if (!offset || *offset < 0 || *offset > INT32_MAX) return std::nullopt;
      place = ThreadStatePlace{Kind::kThreadBlock, *offset, argument};
    } else if (place && code->take({0x48, 0x8d, 0x80}, number)) {  // lea number(%rax),%rax
      place->offset += number;
    } else if (place && code->take({0x48, 0x8b, 0x80}, number)) {  // mov number(%rax),%rax
      place->offset += number;
      is_value = true;
    } else if (place && code->take({0x48, 0x8b, 0x40})) {
      place->offset += code->take_byte();
      is_value = true;
    } else if (place && code->take({0x48, 0x8b, 0x00})) {
      is_value = true;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<ThreadStatePlace> returned_key_value(ProgramImage& image, std::string_view function,
                                                   const ProgramImage::Symbol& runtime) {
  // struct { int is_initialized; pthread_key_t key; }, aligned to 8 bytes here: any address in it gives the key's.
  constexpr std::uint64_t kKey = 4;
  std::optional<Code> code = Code::of(image, function);
  if (!code) return std::nullopt;
  while (!code->is_over()) {
    std::int32_t number = 0;
    std::uint64_t found = 0;
    if (code->take({0x8b, 0x3d}, number) ||        // mov number(%rip),%edi
        code->take({0x48, 0x8d, 0x3d}, number) ||  // lea number(%rip),%rdi
        code->take({0x48, 0x8d, 0x1d}, number)) {  // lea number(%rip),%rbx
      found = code->from_here(number);
    } else if (code->take({0xbf}, number)) {  // mov $number,%edi
      found = static_cast<std::uint32_t>(number);
    } else if (code->take({0x48, 0x8d, 0x98}, number) ||  // lea number(%rax),%rbx, behind _PyRuntime's address
               code->take({0x48, 0x8d, 0xb8}, number) ||  // lea number(%rax),%rdi
               code->take({0x8b, 0xb8}, number) ||        // mov number(%rax),%edi
               code->take({0x48, 0x8d, 0xbb}, number) ||  // lea number(%rbx),%rdi
               code->take({0x48, 0x81, 0xc7}, number)) {  // add $number,%rdi
      found = runtime.address + static_cast<std::uint64_t>(std::int64_t{number});
    } else {
      code->skip(1);
      continue;
    }
    if (found > runtime.address && found - runtime.address < runtime.size) {
      return ThreadStatePlace{ThreadStatePlace::Kind::kThreadKey, 0, (found & ~std::uint64_t{7}) + kKey};
    }
  }
  return std::nullopt;
}

}  // namespace flamed::runtimes
