// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/known_programs.h"

#include <cstdint>

#include "test/catch.h"
#include "test/unit/daemon/unwind/fake_programs.h"

namespace flamed::daemon {
namespace {

symbolizer::FileKey file(std::uint64_t inode) { return {8, 1, inode}; }

struct Programs {
  [[nodiscard]] const flamed_known_program* entry(std::uint64_t inode) const {
    const auto found = table.entries.find({inode, 8U << FLAMED_DEVICE_MINOR_BITS | 1});
    return found == table.entries.end() ? nullptr : &found->second;
  }
  test::FakePrograms table;
  KnownPrograms programs{table};
};

TEST_CASE("a program that turns out to have a runtime in a library is noticed for ever") {
  Programs p;
  p.programs.has_ended(file(1), /*needs_notice=*/false);
  REQUIRE(p.entry(1) != nullptr);
  CHECK(p.entry(1)->layout == FLAMED_NO_RUNTIME);
  p.programs.has_ended(file(1), /*needs_notice=*/true);
  CHECK(p.entry(1) == nullptr);
  // A launcher that ended before it loaded the library.
  p.programs.has_ended(file(1), /*needs_notice=*/false);
  CHECK(p.entry(1) == nullptr);
}

TEST_CASE("a program that is a runtime itself stays one") {
  Programs p;
  p.programs.has_ended(file(1), /*needs_notice=*/false);
  p.programs.has_runtime(file(1), {3, 0x1000});
  for (const bool needs_notice : {false, true}) {
    p.programs.has_ended(file(1), needs_notice);
    REQUIRE(p.entry(1) != nullptr);
    CHECK(p.entry(1)->layout == 3);
    CHECK(p.entry(1)->first_code == 0x1000);
  }
}

TEST_CASE("when many programs have come all but runtimes are met anew") {
  Programs p;
  p.programs.has_runtime(file(1), {3, 0x1000});
  p.programs.has_ended(file(2), /*needs_notice=*/true);
  for (std::uint64_t inode = 3; inode < 3 + 2 * KnownPrograms::kMost; ++inode) {
    p.programs.has_ended(file(inode), /*needs_notice=*/false);
    CHECK(p.table.entries.size() <= KnownPrograms::kMost);
    CHECK(p.entry(inode) != nullptr);
    CHECK(p.entry(1) != nullptr);
  }
  p.programs.has_ended(file(2), /*needs_notice=*/false);
  CHECK(p.entry(2) != nullptr);
}

TEST_CASE("a program for which the table has no room is tried again") {
  Programs p;
  p.table.most = 0;
  p.programs.has_runtime(file(1), {3, 0x1000});
  p.programs.has_ended(file(2), /*needs_notice=*/false);
  CHECK(p.table.entries.empty());
  p.table.most = 2;
  p.programs.has_ended(file(2), /*needs_notice=*/false);
  CHECK(p.entry(2) != nullptr);
}

}  // namespace
}  // namespace flamed::daemon
