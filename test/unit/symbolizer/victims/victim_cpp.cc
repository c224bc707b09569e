// SPDX-License-Identifier: Apache-2.0
//
// C++ functions. Prints where they are: "<demangled name>\t<file offset in hex>".
#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace victim {

template <typename T>
__attribute__((noinline)) T twice(T x) {
  return x + x;
}

namespace {
__attribute__((noinline)) int hidden(int x) { return twice(x) + 1; }
}  // namespace

}  // namespace victim

static void print_place(const char* name, std::uintptr_t address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    std::uint64_t offset = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64, &start, &end, &offset) != 3) continue;
    if (address >= start && address < end) std::printf("%s\t%" PRIx64 "\n", name, address - start + offset);
  }
  if (maps != nullptr) std::fclose(maps);
}

int main(int argc, char**) {
  print_place("victim::twice<double>", reinterpret_cast<std::uintptr_t>(&victim::twice<double>));
  print_place("victim::(anonymous namespace)::hidden", reinterpret_cast<std::uintptr_t>(&victim::hidden));
  return victim::hidden(argc) == -1;
}
