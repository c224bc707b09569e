// SPDX-License-Identifier: Apache-2.0
//
// Writes what the detection of runtimes asks of a file, see recorded_image.h. Usage: record_runtime FILE
#include <fcntl.h>

#include <cstdio>
#include <iostream>
#include <set>
#include <string>

#include "base/handle.h"
#include "runtimes/python/detect.h"
#include "runtimes/v8/detect.h"
#include "symbolizer/elf/elf_program_image.h"

namespace {

using namespace flamed;

class Recorder final : public runtimes::ProgramImage {
 public:
  explicit Recorder(runtimes::ProgramImage& image) : image_(image) {}

  [[nodiscard]] bool is_x86_64() const override { return image_.is_x86_64(); }
  std::optional<Symbol> symbol(std::string_view name) override {
    const std::optional<Symbol> found = image_.symbol(name);
    if (found) note("symbol " + std::string(name) + " " + hex(found->address) + " " + hex(found->size));
    return found;
  }
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    if (!image_.read(address, to)) return false;
    std::string digits;
    for (const std::byte byte : to) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      digits += kDigits[static_cast<unsigned>(byte) >> 4];
      digits += kDigits[static_cast<unsigned>(byte) & 15];
    }
    note("bytes " + hex(address) + " " + digits);
    return true;
  }
  bool is_block_number(std::uint64_t address) override {
    if (!image_.is_block_number(address)) return false;
    note("block " + hex(address));
    return true;
  }
  bool needs(std::string_view library) override {
    if (!image_.needs(library)) return false;
    note("needs " + std::string(library));
    return true;
  }

 private:
  static std::string hex(std::uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(number));
    return text;
  }
  void note(const std::string& line) {
    if (said_.insert(line).second) std::cout << line << '\n';
  }

  runtimes::ProgramImage& image_;
  std::set<std::string> said_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Fd file(::open(argv[1], O_RDONLY | O_CLOEXEC));
  Result<symbolizer::ElfSections> sections = symbolizer::ElfSections::open(file.get());
  if (!sections) {
    std::cerr << sections.error().message() << '\n';
    return 1;
  }
  symbolizer::ElfProgramImage image(*sections);
  Recorder recorder(image);
  if (image.is_x86_64()) std::cout << "x86-64\n";
  const auto show = [&](const char* runtime, const auto& layout) {
    std::cerr << argv[1] << ": "
              << (!layout    ? layout.error().message()
                  : !*layout ? std::string("not ") + runtime
                             : std::string(runtime) + " " + (*layout)->version.text())
              << '\n';
  };
  show("Python", runtimes::detect_python(recorder));
  show("V8", runtimes::detect_v8(recorder));
  return 0;
}
