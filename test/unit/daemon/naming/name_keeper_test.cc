// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/name_keeper.h"

#include <fcntl.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::daemon {
namespace {

using symbolizer::ModulePtr;
using symbolizer::Symbol;
using symbolizer::SymbolChainPtr;
using symbolizer::SymbolKind;

/// Names an address "f+OFFSET".
class FakeSymbolizer final : public symbolizer::Symbolizer {
 public:
  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    ++calls;
    std::vector<SymbolChainPtr> chains;
    for (const Frame& frame : frames) {
      ++asked[frame];
      Symbol symbol{"f+" + std::to_string(frame.offset), "tool", SymbolKind::kNative, {}};
      if (pending.contains(frame.offset)) symbol.pending = true;
      if (unreadable.contains(frame.offset)) {
        symbol.reason = "nobody reads it now";
        symbol.pending = true;
      }
      chains.push_back(share({symbol}));
    }
    return chains;
  }
  int calls = 0;
  std::map<Frame, int> asked;
  std::set<std::uint64_t> pending, unreadable;
};

struct Fixture {
  ModuleId open(std::uint64_t inode) {
    const ModuleId id = modules.file({8, 1, inode}, "/mnt/tool").module;
    modules.want({id, {}, {}, 42, 1, 0x1000, 0x2000});
    std::stop_source stopped;
    stopped.request_stop();
    const auto request = modules.next_request(stopped.get_token());
    REQUIRE(request);
    modules.finish(*request, file());
    return id;
  }
  Fd file() const { return Fd(::fcntl(content.get(), F_DUPFD_CLOEXEC, 0)); }
  void add(const std::vector<Frame>& frames) {
    store::StackSample sample;
    sample.time = clock.monotonic();
    sample.process = {100, 1};
    sample.tid = 100;
    sample.frames = frames;
    store.add(sample);
  }
  void pass(std::int64_t ns) {
    clock.advance_ns(ns);
    keeper.look();
  }
  std::string name(ModuleId module, std::uint64_t offset) const {
    const ModulePtr found = modules.find(module);
    if (!found->is_closed()) return "open";
    const SymbolChainPtr chain = found->names->find(offset);
    return chain == nullptr ? found->why_no_file : chain->front().name;
  }

  ManualClock clock{MonotonicTime{1000 * kNsPerSecond}, WallTime{1'700'000'000 * kNsPerSecond}};
  Fd content{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  symbolizer::ModuleTable modules{100, clock};
  FakeSymbolizer symbolizer;
  store::Store store{{}, clock, 10'000'000};
  bool may_work = true;
  int closed = 0;
  NameKeeper keeper{{modules, symbolizer, store, clock, [this] { return may_work; }, [this] { ++closed; }}};
};

TEST_CASE("the stored addresses of a file that is no longer mapped are named once, and it is closed") {
  Fixture f;
  const ModuleId gone = f.open(1);
  const ModuleId mapped = f.open(2);
  f.add({{mapped, 1}, {gone, 1}, {gone, 2}});
  f.add({{mapped, 1}, {gone, 2}});
  f.pass(0);
  f.modules.note_mapped(std::vector<ModuleId>{mapped});
  f.pass(NameKeeper::kDelayNs - 1);
  CHECK(f.symbolizer.calls == 0);
  CHECK(f.closed == 0);
  f.pass(1);
  CHECK(f.symbolizer.asked == std::map<Frame, int>{{{gone, 1}, 1}, {{gone, 2}, 1}});
  CHECK(f.closed == 1);
  CHECK(f.name(gone, 1) == "f+1");
  CHECK(f.name(gone, 2) == "f+2");
  CHECK(f.name(gone, 3) == "its file was closed when no process had it mapped any more");
  CHECK(f.modules.find(mapped)->file);
  CHECK(f.modules.stats().open_files == 1);
  f.pass(NameKeeper::kLatestNs);
  CHECK(f.symbolizer.calls == 1);
}

TEST_CASE("a file that is mapped and closed again is asked only for new addresses") {
  Fixture f;
  const ModuleId id = f.open(1);
  f.add({{id, 1}});
  f.modules.note_mapped({});
  f.pass(NameKeeper::kDelayNs);
  REQUIRE(f.name(id, 1) == "f+1");

  REQUIRE(f.open(1) == id);
  f.add({{id, 1}, {id, 2}});
  f.modules.note_mapped({});
  f.pass(NameKeeper::kDelayNs);
  CHECK(f.name(id, 1) == "f+1");
  CHECK(f.name(id, 2) == "f+2");
  CHECK(f.symbolizer.asked == std::map<Frame, int>{{{id, 1}, 1}, {{id, 2}, 1}});

  REQUIRE(f.open(1) == id);
  f.modules.note_mapped({});
  f.pass(NameKeeper::kDelayNs);
  CHECK(f.name(id, 2) == "f+2");
  CHECK(f.symbolizer.calls == 2);
}

TEST_CASE("without CPU time for names it waits, and then closes the file anyway and says why") {
  Fixture f;
  const ModuleId id = f.open(1);
  f.add({{id, 1}});
  f.modules.note_mapped({});
  f.may_work = false;
  f.pass(NameKeeper::kDelayNs);
  CHECK(f.name(id, 1) == "open");
  SECTION("until it has some") {
    f.may_work = true;
    f.pass(kNsPerSecond);
    CHECK(f.name(id, 1) == "f+1");
  }
  SECTION("for not too long") {
    f.pass(NameKeeper::kLatestNs - NameKeeper::kDelayNs);
    CHECK(f.name(id, 1) ==
          "its file was closed when no process had it mapped any more, and there was no CPU time to read its names "
          "before (cpu_budget)");
    CHECK(f.symbolizer.calls == 0);
    CHECK(f.modules.stats().open_files == 0);
  }
}

TEST_CASE("names that are being looked up are awaited, but not for long") {
  Fixture f;
  const ModuleId id = f.open(1);
  f.add({{id, 1}, {id, 2}, {id, 3}});
  f.modules.note_mapped({});
  f.symbolizer.pending = {2};
  f.symbolizer.unreadable = {3};
  f.pass(NameKeeper::kDelayNs);
  CHECK(f.name(id, 1) == "open");
  f.pass(NameKeeper::kLatestNs - NameKeeper::kDelayNs);
  CHECK(f.name(id, 1) == "f+1");
  CHECK(f.name(id, 2) == "f+2");
  CHECK_FALSE(f.modules.find(id)->names->find(2)->front().pending);
  CHECK(f.name(id, 3) == "its file was closed when no process had it mapped any more");
}

TEST_CASE("a file without samples is closed without naming") {
  Fixture f;
  const ModuleId id = f.open(1);
  f.may_work = false;
  f.modules.note_mapped({});
  f.pass(NameKeeper::kDelayNs);
  CHECK(f.symbolizer.calls == 0);
  CHECK(f.modules.find(id)->is_closed());
}

TEST_CASE("the thread closes files by itself and ends on a stop request") {
  SystemClock clock;
  symbolizer::ModuleTable modules(100, clock);
  FakeSymbolizer symbolizer;
  const store::Store store({}, clock, 10'000'000);
  NameKeeper keeper({modules, symbolizer, store, clock, [] { return true; }, [] {}});
  std::jthread thread([&](const std::stop_token& stop) { keeper.run(stop); });
  const ModuleId id = modules.file({8, 1, 1}, "/mnt/tool").module;
  modules.want({id, {}, {}, 42, 1, 0x1000, 0x2000});
  const auto request = modules.next_request({});
  REQUIRE(request);
  modules.finish(*request, Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  modules.note_mapped({});
  for (int tenths = 0; tenths < 300 && !modules.find(id)->is_closed(); ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(modules.find(id)->is_closed());
}

}  // namespace
}  // namespace flamed::daemon
