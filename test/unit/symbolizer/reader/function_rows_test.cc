// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/function_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/handle.h"
#include "symbolizer/reader/module_rows.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("rows of single functions are those of the whole file") {
  const std::string path = GENERATE("/proc/self/exe", "/usr/bin/python3", "/usr/bin/openssl");
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;
  const Result<SourcedRows> read = read_module_rows(file.get());
  REQUIRE(read);
  const unwinder::UnwindRows& all = read->rows;
  if (path != "/proc/self/exe" && all.rows.empty()) return;  // of another processor, which emulates this one
  REQUIRE(all.rows.size() > 1000);
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < all.rows.size(); i += all.rows.size() / 500) {
    offsets.push_back(all.base + all.rows[i].offset);
  }
  const auto functions = read_function_rows(file.get(), offsets);
  REQUIRE(functions);
  REQUIRE(functions->size() == offsets.size());
  std::size_t described = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const unwinder::UnwindRows& rows = (*functions)[i];
    if (rows.rows.empty()) {
      CHECK(all.find(offsets[i]) == unwinder::Rule{});
      continue;
    }
    ++described;
    const std::uint64_t first = rows.base + rows.rows.front().offset;
    const std::uint64_t end = rows.base + rows.rows.back().offset;
    CHECK(first <= offsets[i]);
    CHECK(offsets[i] < end);
    for (std::uint64_t at = first; at < end; ++at) {
      if (rows.find(at) != all.find(at)) FAIL(path << " at " << at);
    }
  }
  CHECK(described > offsets.size() / 2);
}

TEST_CASE("places outside of all code have no rows, and a file without a search table has none") {
  const Fd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::vector<std::uint64_t> nowhere{0, 1, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  const auto functions = read_function_rows(own.get(), nowhere);
  REQUIRE(functions);
  for (const unwinder::UnwindRows& rows : *functions) CHECK(rows.rows.empty());

  const Fd text(::memfd_create("text", MFD_CLOEXEC));
  REQUIRE(::write(text.get(), "no ELF file", 11) == 11);
  CHECK_FALSE(read_function_rows(text.get(), nowhere));
}

TEST_CASE("a damaged search table or record gives no rows") {
  const Fd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto size = static_cast<std::size_t>(::lseek(own.get(), 0, SEEK_END));
  std::vector<char> bytes(size);
  REQUIRE(::pread(own.get(), bytes.data(), size, 0) == static_cast<ssize_t>(size));
  const Result<SourcedRows> read = read_module_rows(own.get());
  REQUIRE(read);
  const unwinder::UnwindRows& all = read->rows;
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < all.rows.size(); i += all.rows.size() / 20) {
    offsets.push_back(all.base + all.rows[i].offset);
  }
  const Fd damaged(::memfd_create("damaged", MFD_CLOEXEC));
  // Every part of the file in turn is overwritten, except its headers.
  constexpr std::size_t kParts = 64;
  for (std::size_t part = 0; part < kParts; ++part) {
    std::vector<char> copy = bytes;
    const std::size_t begin = 4096 + part * (size - 4096) / kParts;
    for (std::size_t i = begin; i < begin + (size - 4096) / kParts; ++i) copy[i] = static_cast<char>(i * 37);
    REQUIRE(::pwrite(damaged.get(), copy.data(), size, 0) == static_cast<ssize_t>(size));
    const auto functions = read_function_rows(damaged.get(), offsets);
    if (functions) CHECK(functions->size() == offsets.size());
  }
}

}  // namespace
}  // namespace flamed::symbolizer
