// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/python_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "runtimes/linked_frames.h"
#include "runtimes/python/detect.h"
#include "runtimes/remote_memory.h"
#include "symbolizer/elf/elf_program_image.h"
#include "symbolizer/elf/elf_sections.h"

namespace flamed::symbolizer {
namespace {

/// A process's memory by its /proc/PID/mem.
class OpenMemory final : public runtimes::RemoteMemory {
 public:
  explicit OpenMemory(int fd) : fd_(fd) {}
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    while (!to.empty()) {
      if (address > std::numeric_limits<off_t>::max()) return false;
      const ssize_t bytes = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(address));
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) return false;
      address += static_cast<std::uint64_t>(bytes);
      to = to.subspan(static_cast<std::size_t>(bytes));
    }
    return true;
  }

 private:
  const int fd_;
};

/// Is it still the code object that the sample met?
bool is_unchanged(OpenMemory& memory, const PythonProcess& process, const PythonCode& code) {
  std::array<std::uint64_t, 4> words{};
  const auto used = std::span(words).first(std::min<std::size_t>(process.check_words, words.size()));
  return memory.read(code.address + process.check, std::as_writable_bytes(used)) &&
         runtimes::check_word(used) == code.check;
}

}  // namespace

Result<std::optional<PythonModule>> find_python(int fd) {
  Result<ElfSections> sections = ElfSections::open(fd);
  if (!sections) return std::move(sections).error();
  if (const Status loadable = sections->check_loadable(); !loadable) return std::optional<PythonModule>();
  ElfProgramImage image(*sections);
  Result<std::optional<runtimes::PythonLayout>> layout = runtimes::detect_python(image);
  if (!layout) return std::move(layout).error();
  if (!*layout) return std::optional<PythonModule>();
  for (const GElf_Phdr& segment : sections->segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    return std::optional(PythonModule{**std::move(layout), segment.p_vaddr - segment.p_offset, segment.p_vaddr});
  }
  return Error("Python: the file has no code");
}

std::vector<PythonAnswer> read_python_functions(int fd, const PythonProcess& process,
                                                std::span<const PythonCode> codes) {
  OpenMemory memory(fd);
  runtimes::PythonLayout layout;
  layout.objects = process.objects;
  std::vector<PythonAnswer> answers(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    Result<runtimes::PythonFunction> function =
        runtimes::read_python_function(memory, layout, process.base, codes[i].address);
    if (!function)
      answers[i].why_not = function.error().message();
    else if (!is_unchanged(memory, process, codes[i]))
      answers[i].why_not = "another code object is at its address by now";
    else
      answers[i].function = std::move(function).value();
  }
  return answers;
}

}  // namespace flamed::symbolizer
