// SPDX-License-Identifier: Apache-2.0
//
// The file is a library of
//   int _PyRuntime[4] = {1, 2, 3, 4};
//   int* pointers[4] = {&_PyRuntime[1], 0, &_PyRuntime[3], &other};  // `other` is another library's
//   static __thread int hidden; __thread int first, second;
//   int* code(void) { return &hidden + first + second; }
#include "symbolizer/elf/elf_program_image.h"

#include <array>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

using runtimes::read_number;

class Library {
 public:
  Library() : bytes_(read_file(ELF_LIBRARY, 1 << 16).value()) {}
  ElfProgramImage& image() { return image_; }

 private:
  std::string bytes_;
  ElfSections sections_ = ElfSections::open(std::as_bytes(std::span(bytes_))).value();
  ElfProgramImage image_{sections_};
};

TEST_CASE("a library's image has the symbols that it defines") {
  Library library;
  CHECK(library.image().is_x86_64());
  const auto runtime = library.image().symbol("_PyRuntime");
  REQUIRE(runtime);
  CHECK(runtime->size == 16);
  CHECK(library.image().symbol("code"));
  CHECK_FALSE(library.image().symbol("other"));
  CHECK_FALSE(library.image().symbol("hidden"));
  CHECK_FALSE(library.image().symbol("first"));  // it has no address
  CHECK(library.image().needs("libc.so.6"));
  CHECK_FALSE(library.image().needs("libc.so"));
}

TEST_CASE("a library's image has its bytes with the addresses that the dynamic linker writes") {
  Library library;
  const std::uint64_t runtime = library.image().symbol("_PyRuntime")->address;
  const std::uint64_t pointers = library.image().symbol("pointers")->address;
  CHECK(read_number<std::uint32_t>(library.image(), runtime + 4) == 2U);
  CHECK(read_number<std::uint64_t>(library.image(), pointers) == runtime + 4);
  CHECK(read_number<std::uint64_t>(library.image(), pointers + 8) == 0U);
  CHECK(read_number<std::uint64_t>(library.image(), pointers + 16) == runtime + 12);
  CHECK(read_number<std::uint64_t>(library.image(), pointers + 24) == 0U);
  // A part of an address.
  CHECK(read_number<std::uint32_t>(library.image(), pointers + 2) == static_cast<std::uint32_t>((runtime + 4) >> 16));
}

TEST_CASE("bytes outside of what is loaded are not read") {
  Library library;
  CHECK_FALSE(read_number<std::uint64_t>(library.image(), 1 << 20));
  CHECK_FALSE(read_number<std::uint64_t>(library.image(), UINT64_MAX - 7));
}

TEST_CASE("a library's image tells where the numbers of its thread-local variables will be") {
  Library library;
  constexpr std::uint64_t kHidden = 0x1658;
  constexpr std::uint64_t kFirst = 0x1678;
  CHECK(library.image().is_block_number(kHidden));
  CHECK(library.image().is_block_number(kFirst));
  CHECK(read_number<std::uint64_t>(library.image(), kFirst + 8) == 4U);
  CHECK_FALSE(library.image().is_block_number(kFirst + 8));
}

}  // namespace
}  // namespace flamed::symbolizer
