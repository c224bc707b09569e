// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/frame_names.h"

#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/daemon/history/history_fixture.h"

namespace flamed::daemon {
namespace {

using store::test::code;

struct Fixture {
  ManualClock clock{MonotonicTime{1'000 * kNsPerSecond}, store::test::kNoon};
  test::TestSymbolizer symbolizer;
  bool may_work = true;
  FrameNames names{{symbolizer, clock, [this] { return may_work; }}};
};

std::vector<std::string> texts(const std::vector<archive::Name>& names) {
  std::vector<std::string> texts;
  for (const archive::Name& name : names) texts.push_back(std::to_string(name.frame) + " " + name.chain->back().name);
  return texts;
}

}  // namespace

TEST_CASE("each new frame is named once") {
  Fixture fixture;
  const std::vector<Frame> frames{code(0x10), {kTruncatedModule, 2}, code(0x20)};
  fixture.names.add(7, frames);
  CHECK(texts(fixture.names.take({})) == std::vector<std::string>{"7 f1", "9 f2"});
  CHECK(fixture.names.take({}).empty());
  CHECK(fixture.symbolizer.asked == 2);
}

TEST_CASE("without CPU time frames are named later, and at the end for a second") {
  Fixture fixture;
  fixture.may_work = false;
  const std::vector<Frame> frames{code(0x10)};
  fixture.names.add(0, frames);
  CHECK(fixture.names.take({}).empty());
  SECTION("when there is some") {
    fixture.may_work = true;
    CHECK(fixture.names.take({}).size() == 1);
  }
  SECTION("at the end") {
    std::stop_source stop;
    stop.request_stop();
    CHECK(fixture.names.take(stop.get_token()).size() == 1);
  }
}

TEST_CASE("without CPU time, too, frames get names that are at hand, and those of the kernel") {
  Fixture fixture;
  fixture.may_work = false;
  fixture.symbolizer.at_hand = {code(0x20)};
  const std::vector<Frame> frames{code(0x10), code(0x20), {kKernelModule, 0xffffffff81000030}};
  fixture.names.add(0, frames);
  CHECK(texts(fixture.names.take({})) ==
        std::vector<std::string>{"1 f2", "2 f" + std::to_string(0xffffffff8100003ULL)});
  fixture.may_work = true;
  CHECK(texts(fixture.names.take({})) == std::vector<std::string>{"0 f1"});
}

TEST_CASE("a frame without a name is asked for again, and written when it has a better one") {
  Fixture fixture;
  fixture.symbolizer.why_unknown = "no symbols";
  const std::vector<Frame> frames{code(0x10)};
  fixture.names.add(0, frames);
  CHECK(texts(fixture.names.take({})) == std::vector<std::string>{"0 [unknown] (lib)"});
  CHECK(fixture.names.take({}).empty());
  fixture.symbolizer.why_unknown.clear();
  CHECK(texts(fixture.names.take({})) == std::vector<std::string>{"0 f1"});
  CHECK(fixture.names.take({}).empty());
}

TEST_CASE("another session's numbers are other frames") {
  Fixture fixture;
  fixture.may_work = false;
  const std::vector<Frame> frames{code(0x10)};
  fixture.names.add(0, frames);
  CHECK(fixture.names.take({}).empty());
  fixture.names.begin_session();
  fixture.may_work = true;
  CHECK(fixture.names.take({}).empty());
}

}  // namespace flamed::daemon
