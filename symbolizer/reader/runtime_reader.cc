// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/runtime_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtimes/code_check.h"
#include "runtimes/copied_memory.h"
#include "runtimes/paged_memory.h"
#include "runtimes/python/detect.h"
#include "runtimes/python/names.h"
#include "runtimes/remote_memory.h"
#include "runtimes/v8/detect.h"
#include "runtimes/v8/names.h"
#include "symbolizer/elf/elf_program_image.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/reader/open_memory.h"

namespace flamed::symbolizer {
namespace {

/// Empty: the file is none.
using Layout = decltype(RuntimeModule::layout);
Result<std::optional<Layout>> find_layout(ElfProgramImage& image) {
  Result<std::optional<runtimes::PythonLayout>> python = runtimes::detect_python(image);
  if (!python) return std::move(python).error();
  if (*python) return std::optional<Layout>(**std::move(python));
  Result<std::optional<runtimes::V8Layout>> v8 = runtimes::detect_v8(image);
  if (!v8) return std::move(v8).error();
  if (*v8) return std::optional<Layout>(**std::move(v8));
  return std::optional<Layout>();
}

/// The functions of one request.
class FunctionReader {
 public:
  FunctionReader(runtimes::RemoteMemory& memory, const RuntimeProcess& process)
      : memory_(memory), process_(process), v8_(memory, process.v8) {}

  /// Still to be checked.
  RuntimeAnswer read(const RuntimeCode& code) {
    RuntimeAnswer answer;
    if (const Status status = fill(code, answer); !status) {
      answer = {};
      answer.why_not = status.error().message();
    }
    return answer;
  }

 private:
  Status fill(const RuntimeCode& code, RuntimeAnswer& answer) {
    switch (process_.kind) {
      case runtimes::RuntimeKind::kPython: {
        Result<runtimes::RuntimeFunction> function =
            runtimes::read_python_function(memory_, process_.python, process_.base, code.address);
        if (!function) return std::move(function).error();
        answer.function = std::move(function).value();
        return {};
      }
      case runtimes::RuntimeKind::kV8:
        return code.pc == 0 ? fill_v8(code.address, answer) : fill_v8_code(code, answer);
      case runtimes::RuntimeKind::kJava:
        break;  // see read_hotspot_names()
    }
    return Error("an unknown runtime");
  }

  Status fill_v8(std::uint64_t shared, RuntimeAnswer& answer) {
    Result<std::optional<runtimes::RuntimeFunction>> function = v8_.function(shared);
    if (!function) return std::move(function).error();
    if (*function) answer.function = **std::move(function);
    return {};
  }

  Status fill_v8_code(const RuntimeCode& code, RuntimeAnswer& answer) {
    const Result<runtimes::V8Reader::Code> found = v8_.code_at(code.pc, code.address);
    if (!found) return found.error();
    if (found->shared == 0 && !found->is_own) return Error("code whose function is not known");
    answer.code_start = found->start;
    answer.code_end = found->start + found->size;
    answer.owner = found->shared;
    return found->is_own ? Status() : fill_v8(found->shared, answer);
  }

  runtimes::RemoteMemory& memory_;
  const RuntimeProcess& process_;
  runtimes::V8Reader v8_;
};

/// Was what has been read that code all the time? `memory` is as it is now.
void check(runtimes::RemoteMemory& memory, const RuntimeProcess& process, const RuntimeCode& code,
           RuntimeAnswer& answer) {
  if (!answer.why_not.empty() || code.address == 0) return;
  if (runtimes::read_check_word(memory, process.check, code.address) == code.check) return;
  answer = {};
  answer.why_not = "another one is at its address by now";
}

/// From its copy alone: what is in memory by now may belong to other code.
RuntimeAnswer read_copied(const CopiedCode& copy, const RuntimeProcess& process) {
  std::array<runtimes::MemoryCopy, CopiedCode::kParts> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [address, bytes] = copy.places[i];
    parts[i] = {address, std::span(copy.parts[i]).first(std::min<std::size_t>(bytes, CopiedCode::kPartBytes))};
  }
  runtimes::CopiedMemory memory(parts);
  RuntimeAnswer answer = FunctionReader(memory, process).read(copy.code);
  check(memory, process, copy.code, answer);
  return answer;
}

/// CPython's objects stay where they are as long as they live, so they are read page by page, and checked when all have
/// been read.
std::vector<RuntimeAnswer> read_python(OpenMemory& memory, const RuntimeProcess& process,
                                       std::span<const RuntimeCode> codes) {
  std::vector<RuntimeAnswer> answers;
  answers.reserve(codes.size());
  runtimes::PagedMemory pages(memory);
  FunctionReader reader(pages, process);
  for (const RuntimeCode& code : codes) answers.push_back(reader.read(code));
  runtimes::PagedMemory later(memory);
  for (std::size_t i = 0; i < codes.size(); ++i) check(later, process, codes[i], answers[i]);
  return answers;
}

/// V8 moves what a function refers to, so each is read on its own.
std::vector<RuntimeAnswer> read_v8(OpenMemory& memory, const RuntimeProcess& process,
                                   std::span<const RuntimeCode> codes) {
  std::vector<RuntimeAnswer> answers;
  answers.reserve(codes.size());
  FunctionReader reader(memory, process);
  for (const RuntimeCode& code : codes) {
    answers.push_back(reader.read(code));
    check(memory, process, code, answers.back());
  }
  return answers;
}

}  // namespace

Result<std::optional<RuntimeModule>> find_runtime(int fd) {
  Result<ElfSections> sections = ElfSections::open(fd);
  if (!sections) return std::move(sections).error();
  if (const Status loadable = sections->check_loadable(); !loadable) return std::optional<RuntimeModule>();
  ElfProgramImage image(*sections);
  Result<std::optional<Layout>> layout = find_layout(image);
  if (!layout) return std::move(layout).error();
  if (!*layout) return std::optional<RuntimeModule>();
  for (const GElf_Phdr& segment : sections->segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    return std::optional(RuntimeModule{**std::move(layout), segment.p_vaddr - segment.p_offset, segment.p_vaddr});
  }
  return Error("a runtime without code in its file");
}

std::vector<RuntimeAnswer> read_runtime_functions(int fd, const RuntimeProcess& process,
                                                  std::span<const RuntimeCode> codes,
                                                  std::span<const CopiedCode> copies) {
  OpenMemory memory(fd);
  std::vector<RuntimeAnswer> answers = process.kind == runtimes::RuntimeKind::kPython
                                           ? read_python(memory, process, codes)
                                           : read_v8(memory, process, codes);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (!answers[i].function.name.empty()) continue;
    const auto copy =
        std::find_if(copies.begin(), copies.end(), [&](const CopiedCode& each) { return each.code == codes[i]; });
    if (copy != copies.end()) answers[i] = read_copied(*copy, process);
  }
  return answers;
}

}  // namespace flamed::symbolizer
