// SPDX-License-Identifier: Apache-2.0
//
// Any memory as a Python's code object, of the version and with the line table that the first byte says: texts are
// bounded UTF-8, lines ascend, and reads are bounded.
#include "runtimes/python/names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtimes/remote_memory.h"

namespace {

using namespace flamed::runtimes;

/// The input repeats from address 0 on, so that pointers in it lead to something, up to an end.
class AnyMemory final : public RemoteMemory {
 public:
  AnyMemory(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    constexpr std::uint64_t kEnd = 1 << 20;
    constexpr std::size_t kMostRead = 4 * kMostTextBytes;
    if (to.size() > std::max(kMostRead, kMostLineTableBytes) || ++reads_ > 64) std::abort();
    if (size_ == 0 || address > kEnd || to.size() > kEnd - address) return false;
    for (std::size_t done = 0; done < to.size();) {
      const std::size_t from = (address + done) % size_;
      const std::size_t part = std::min(size_ - from, to.size() - done);
      std::memcpy(to.data() + done, data_ + from, part);
      done += part;
    }
    return true;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  int reads_ = 0;
};

void check_text(const std::string& text) {
  if (text.size() > kMostTextBytes) std::abort();
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xc0 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    if (length == 0 || length > text.size() - i) std::abort();
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) std::abort();
    }
    i += length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool is_before_12 = (data[0] & 1) != 0;
  PythonLayout layout;
  layout.objects = {.type = 8,
                    .name = 128,
                    .file = 112,
                    .first_line = 68,
                    .lines = 136,
                    .lines_kind = static_cast<PythonLines>((data[0] >> 1) % 3),
                    .string_length = 16,
                    .string_state = 32,
                    .ascii_text = static_cast<std::uint16_t>(is_before_12 ? 48 : 40),
                    .other_text = static_cast<std::uint16_t>(is_before_12 ? 72 : 56),
                    .bytes_length = 16,
                    .bytes_text = 32,
                    .code_type = 0x100,
                    .string_type = 0x200,
                    .bytes_type = 0x300};
  AnyMemory memory(data + 1, size - 1);
  const flamed::Result<RuntimeFunction> function = read_python_function(memory, layout.objects, 0, 0);
  if (!function) {
    if (function.error().message().empty()) std::abort();
    return 0;
  }
  if (function->name.empty()) std::abort();
  check_text(function->name);
  check_text(function->file);
  if (function->lines.empty() || function->lines.size() > kMostLineRuns) std::abort();
  for (std::size_t i = 1; i < function->lines.size(); ++i) {
    if (function->lines[i - 1].first >= function->lines[i].first) std::abort();
    if (function->lines[i - 1].line == function->lines[i].line) std::abort();
  }
  static_cast<void>(function->line_at(-1));
  static_cast<void>(function->line_at(INT64_MAX));
  return 0;
}
