// SPDX-License-Identifier: Apache-2.0
//
// Runs one fuzzer on every file of a corpus, so that every compiler checks earlier findings in every run of the tests.
// Usage: fuzz_replay_<name> DIRECTORY...
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      std::cout << entry.path().filename().string() << '\n' << std::flush;  // it names the input of a crash
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++inputs;
    }
  }
  if (inputs == 0) {
    std::cerr << "no inputs: the corpus is empty or missing\n";
    return 1;
  }
  return 0;
}
