// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_memory.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "test/catch.h"

namespace flamed {
namespace {

/// The line VmFlags of this address's mapping.
std::string flags_of(const void* address) {
  std::ifstream mappings("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(mappings, line);) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> start >> dash >> end && dash == '-') {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      is_here = start <= at && at < end;
    }
    if (is_here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

TEST_CASE("secret memory is in no core dump and in no child process") {
  const Result<MappedMemory> memory = MappedMemory::make_secret(8192, "a test");
  REQUIRE(memory);
  memory->as<int>()[2047] = 1;
  const std::string flags = flags_of(memory->data());
  CHECK(flags.find(" dd ") != std::string::npos);
  CHECK(flags.find(" dc ") != std::string::npos);
}

TEST_CASE("memory that can't be had is an error that names its use") {
  const Result<MappedMemory> memory = MappedMemory::make_secret(std::size_t{1} << 60, "a test");
  REQUIRE_FALSE(memory);
  CHECK(memory.error().message().find("a test") != std::string::npos);
}

}  // namespace
}  // namespace flamed
