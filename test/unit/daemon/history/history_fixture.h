// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of history: a History over a TestStore, in a folder that it may share with an earlier one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::daemon::test {

class OneModule final : public symbolizer::Modules {
 public:
  [[nodiscard]] symbolizer::ModulePtr find(ModuleId id) const override {
    if (id != ModuleId{16}) return nullptr;
    return std::make_shared<const symbolizer::Module>(
        symbolizer::Module{id, symbolizer::ModuleKind::kFile, "/usr/bin/program", {}, {}, {}});
  }
};

/// Kernel addresses from here on may mean something else later.
inline constexpr std::uint64_t kFirstBpfProgram = 0xffffffffc0000000;

/// Names as store::test::TestNamer does.
class TestSymbolizer final : public symbolizer::Symbolizer {
 public:
  std::vector<symbolizer::SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    asked += frames.size();
    if (!why_unknown.empty()) {
      return std::vector<symbolizer::SymbolChainPtr>(
          frames.size(), share({NamedFrame{"[unknown] (lib)", "lib", FrameKind::kUnknown, why_unknown}}));
    }
    return namer_.name(frames);
  }
  std::vector<symbolizer::SymbolChainPtr> known(std::span<const Frame> frames) override {
    std::vector<symbolizer::SymbolChainPtr> chains = namer_.name(frames);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (!at_hand.contains(frames[i])) chains[i] = nullptr;
    }
    return chains;
  }
  std::size_t asked = 0;
  std::string why_unknown;
  std::set<Frame> at_hand;

 private:
  store::test::TestNamer namer_;
};

struct TestHistory {
  TestHistory(store::test::TestStore& from, std::string path, std::string boot = "this boot")
      : TestHistory(from, std::move(path), options(std::move(boot))) {}
  TestHistory(store::test::TestStore& from, std::string path, archive::Archive::Options options)
      : test(from), history(parts(), std::move(path), std::move(options)) {}

  History::Parts parts() {
    return {test.store,
            modules,
            test.clock,
            symbolizer,
            [this] { return may_name; },
            [](MonotonicTime) {},
            [] { return 4U; },
            [began = test.clock.wall()](const store::WallWindow& window) -> std::optional<std::uint64_t> {
              if (window.from < began) return std::nullopt;
              return static_cast<std::uint64_t>(window.to.ns - window.from.ns);
            },
            [](std::uint64_t address) { return address < kFirstBpfProgram; }};
  }
  static archive::Archive::Options options(std::string boot) {
    archive::Archive::Options options;
    options.boot_id = std::move(boot);
    options.host = "test-host";
    options.least_free = 1'000'000;
    options.quiet_bytes = 0;
    return options;
  }

  store::test::TestStore& test;
  OneModule modules;
  TestSymbolizer symbolizer;
  bool may_name = true;
  History history;
};

}  // namespace flamed::daemon::test
