// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/caching_symbolizer.h"

#include <atomic>
#include <string>
#include <thread>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::symbolizer {
namespace {

/// Names a frame after its offset, and counts the queries.
class CountingSymbolizer final : public Symbolizer {
 public:
  std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    ++calls;
    asked += frames.size();
    std::vector<SymbolChainPtr> chains;
    for (const Frame& frame : frames) {
      Symbol symbol{"f" + std::to_string(frame.offset), "m" + std::to_string(frame.module.value), SymbolKind::kNative,
                    reason};
      symbol.pending = pending;
      chains.push_back(std::make_shared<const SymbolChain>(SymbolChain{symbol}));
    }
    return chains;
  }
  std::atomic<std::size_t> calls = 0;
  std::atomic<std::size_t> asked = 0;
  std::string reason;
  bool pending = false;
};

Frame frame(std::uint64_t offset, std::uint32_t module = 20) { return {ModuleId{module}, offset}; }

std::string name_of(CachingSymbolizer& cache, Frame f) { return cache.symbolise(std::span(&f, 1)).at(0)->at(0).name; }

TEST_CASE("a frame is looked up once") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  CHECK(name_of(cache, frame(1)) == "f1");
  CHECK(name_of(cache, frame(1)) == "f1");
  CHECK(inner.asked == 1);
  CHECK(cache.stats().hits == 1);
  CHECK(cache.stats().misses == 1);
  CHECK(cache.stats().entries == 1);
  CHECK(cache.stats().bytes > 0);
}

TEST_CASE("known answers are given without asking for the others") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  static_cast<void>(name_of(cache, frame(1)));
  const auto chains = cache.known(std::vector<Frame>{frame(1), frame(2)});
  CHECK(chains.at(0)->at(0).name == "f1");
  CHECK(chains.at(1) == nullptr);
  CHECK(inner.asked == 1);
  const std::uint64_t forgotten = cache.forgotten();
  cache.forget_all();
  CHECK(cache.forgotten() != forgotten);
  CHECK(cache.known(std::vector<Frame>{frame(1)}).at(0) == nullptr);
}

TEST_CASE("the same offset of two modules is two frames") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  const std::vector<Frame> frames = {frame(1, 20), frame(1, 21)};
  const auto chains = cache.symbolise(frames);
  CHECK(chains[0]->at(0).module == "m20");
  CHECK(chains[1]->at(0).module == "m21");
}

TEST_CASE("answers are in the order of the query, with known, unknown and repeated frames") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  static_cast<void>(name_of(cache, frame(2)));
  const std::vector<Frame> frames = {frame(3), frame(2), frame(1), frame(3), frame(2)};
  const auto chains = cache.symbolise(frames);
  REQUIRE(chains.size() == 5);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(chains[i]->at(0).name == "f" + std::to_string(frames[i].offset));
  }
  CHECK(inner.calls == 2);
  CHECK(inner.asked == 3);
}

TEST_CASE("an empty query looks nothing up") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  CHECK(cache.symbolise({}).empty());
  CHECK(inner.calls == 0);
}

TEST_CASE("an answer with a reason is kept for a short time only") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  inner.reason = "not opened yet";
  CachingSymbolizer cache(inner, clock);
  static_cast<void>(name_of(cache, frame(1)));
  static_cast<void>(name_of(cache, frame(1)));
  CHECK(inner.asked == 1);
  clock.advance_ns(6 * kNsPerSecond);
  inner.reason.clear();
  static_cast<void>(name_of(cache, frame(1)));
  CHECK(inner.asked == 2);
  clock.advance_ns(1000 * kNsPerSecond);
  static_cast<void>(name_of(cache, frame(1)));
  CHECK(inner.asked == 2);
  CHECK(cache.stats().entries == 1);
}

TEST_CASE("a pending answer is not kept, so that the next query gets the name") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  inner.reason = "not opened yet";
  inner.pending = true;
  CachingSymbolizer cache(inner, clock);
  static_cast<void>(name_of(cache, frame(1)));
  CHECK(cache.stats().entries == 0);
  inner.reason.clear();
  inner.pending = false;
  CHECK(cache.symbolise(std::vector{frame(1)}).at(0)->at(0).reason.empty());
  CHECK(cache.stats().entries == 1);
}

TEST_CASE("memory stays within the budget, and dropped answers are looked up again") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock, {.budget_bytes = 20'000});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK(name_of(cache, frame(i)) == "f" + std::to_string(i));
    REQUIRE(cache.stats().bytes <= 20'000);
  }
  CHECK(cache.stats().evictions > 0);
  CHECK(cache.stats().entries + cache.stats().evictions == 1000);
  CHECK(name_of(cache, frame(0)) == "f0");
}

TEST_CASE("frames in use survive a sweep of frames used once") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock, {.budget_bytes = 20'000});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    static_cast<void>(name_of(cache, frame(7, 99)));
    static_cast<void>(name_of(cache, frame(i)));
  }
  CHECK(inner.asked == 2001);
}

TEST_CASE("an answer larger than the budget is returned but not kept") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock, {.budget_bytes = 10});
  CHECK(name_of(cache, frame(1)) == "f1");
  CHECK(cache.stats().entries == 0);
  CHECK(cache.stats().bytes == 0);
}

TEST_CASE("a dropped module is looked up again, the others are kept") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  static_cast<void>(name_of(cache, frame(1, 20)));
  static_cast<void>(name_of(cache, frame(1, 21)));
  cache.forget(ModuleId{20});
  CHECK(cache.stats().entries == 1);
  static_cast<void>(name_of(cache, frame(1, 21)));
  CHECK(inner.asked == 2);
  static_cast<void>(name_of(cache, frame(1, 20)));
  CHECK(inner.asked == 3);
}

TEST_CASE("addresses with equal names share them across modules and queries") {
  class OfEight final : public Symbolizer {
    std::vector<SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
      std::vector<SymbolChainPtr> chains;
      for (const Frame& frame : frames) {
        Symbol symbol{"f" + std::to_string(frame.offset / 8), "libc.so", SymbolKind::kNative, ""};
        symbol.line = frame.offset == 7 ? 12 : 0;
        chains.push_back(share({symbol}));
      }
      return chains;
    }
  };
  ManualClock clock({0}, {0});
  OfEight inner;
  CachingSymbolizer cache(inner, clock);
  const std::vector<Frame> first = {frame(1), frame(2), frame(7), frame(9)};
  const std::vector<Frame> later = {frame(3, 21)};
  static_cast<void>(cache.symbolise(first));
  static_cast<void>(cache.symbolise(later));
  const auto chains = cache.symbolise(first);
  CHECK(chains[0] == chains[1]);
  CHECK(chains[0] == cache.symbolise(later)[0]);
  CHECK(chains[0] != chains[2]);  // another line
  CHECK(chains[0] != chains[3]);
  CHECK(chains[2]->at(0).line == 12);
  CHECK(chains[3]->at(0).name == "f1");

  // A shared name counts once, until its last address is dropped.
  const std::size_t bytes = cache.stats().bytes;
  static_cast<void>(cache.symbolise(std::vector{frame(4, 21)}));
  CHECK(cache.stats().bytes - bytes < sizeof(Symbol));
  cache.forget(ModuleId{21});
  CHECK(cache.stats().bytes < bytes);
  cache.forget(ModuleId{20});
  CHECK(cache.stats().entries == 0);
  CHECK(cache.stats().bytes == 0);
}

TEST_CASE("kept answers are found and dropped ones are not, however many there are") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock);
  const auto ask_all = [&](std::uint32_t module) {
    std::vector<Frame> frames;
    for (std::uint64_t i = 0; i < 3000; ++i) frames.push_back(frame(i * 16, module));
    const auto chains = cache.symbolise(frames);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      REQUIRE(chains[i]->at(0).name == "f" + std::to_string(i * 16));
      REQUIRE(chains[i]->at(0).module == "m" + std::to_string(module));
    }
  };
  for (std::uint32_t module = 20; module < 25; ++module) ask_all(module);
  REQUIRE(inner.asked == 15'000);
  cache.forget(ModuleId{21});
  cache.forget(ModuleId{23});
  CHECK(cache.stats().entries == 9'000);
  for (std::uint32_t module : {20U, 22U, 24U}) ask_all(module);
  CHECK(inner.asked == 15'000);
  for (std::uint32_t module : {21U, 23U}) ask_all(module);
  CHECK(inner.asked == 21'000);
  CHECK(cache.stats().entries == 15'000);
}

TEST_CASE("threads may query at the same time") {
  ManualClock clock({0}, {0});
  CountingSymbolizer inner;
  CachingSymbolizer cache(inner, clock, {.budget_bytes = 50'000});
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t round = 0; round < 50; ++round) {
          std::vector<Frame> frames;
          for (std::uint64_t i = 0; i < 300; ++i) frames.push_back(frame((i * (t + 1) + round) % 500));
          const auto chains = cache.symbolise(frames);
          for (std::size_t i = 0; i < frames.size(); ++i) {
            if (chains[i]->at(0).name != "f" + std::to_string(frames[i].offset)) ++wrong;
          }
        }
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(cache.stats().hits + cache.stats().misses == std::uint64_t{4} * 50 * 300);
}

}  // namespace
}  // namespace flamed::symbolizer
