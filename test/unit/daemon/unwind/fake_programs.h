// SPDX-License-Identifier: Apache-2.0
//
// FakePrograms: the kernel program's table of programs in plain memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "daemon/unwind/known_programs.h"

namespace flamed::test {

class FakePrograms final : public daemon::KnownPrograms::Table {
 public:
  Status put_program(const flamed_program_file& file, const flamed_known_program& program) override {
    if (entries.size() >= most) return Error("the table of programs is full");
    entries[{file.inode, file.device}] = program;
    return {};
  }
  void remove_program(const flamed_program_file& file) override { entries.erase({file.inode, file.device}); }

  std::size_t most = FLAMED_MAX_PROGRAM_FILES;
  std::map<std::pair<std::uint64_t, std::uint64_t>, flamed_known_program> entries;  ///< by inode and device
};

}  // namespace flamed::test
