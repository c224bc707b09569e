// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/index/kept_index.h"
#include "test/catch.h"
#include "test/unit/store/store_fixture.h"

namespace flamed::store::test {
namespace {

/// Keeps its promise: names stay until the edition changes. A name may_change where a test sets it so.
class KeepingNamer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    asked += frames.size();
    if (while_naming) std::exchange(while_naming, nullptr)();
    std::vector<std::shared_ptr<const InlineChain>> chains;
    for (const Frame& frame : frames) {
      if (shared != nullptr && frame.offset >= 0x100) {
        chains.push_back(shared);
        continue;
      }
      InlineChain chain;
      if (frame.offset % 5 == 0)
        chain.push_back({"outer" + std::to_string(frame.offset % 3), "lib", FrameKind::kNative, ""});
      NamedFrame function{"f" + std::to_string(frame.offset / 16), "lib", FrameKind::kNative, ""};
      function.build_id = "build" + std::to_string(frame.module.value);
      function.file = frame.offset % 7 == 0 ? "" : "source" + std::to_string(frame.offset % 2);
      function.line = static_cast<std::uint32_t>(frame.offset % 16);
      if (const auto renamed = names.find(frame); renamed != names.end()) function = renamed->second;
      chain.push_back(std::move(function));
      chains.push_back(std::make_shared<const InlineChain>(std::move(chain)));
    }
    return chains;
  }
  std::uint64_t edition(std::span<const ModuleId> /*modules*/) override { return edition_now; }
  [[nodiscard]] KeptIndex* kept_index() override { return &index; }

  KeptIndex index{std::size_t{8} << 20};
  std::map<Frame, NamedFrame> names;
  std::uint64_t edition_now = 1;
  std::size_t asked = 0;
  std::shared_ptr<const InlineChain> shared;  ///< of addresses from 0x100 on, if a test sets it
  std::function<void()> while_naming;
};

/// Names the same and promises nothing: a query with it starts from scratch.
class ForgetfulNamer final : public FrameNamer {
 public:
  explicit ForgetfulNamer(KeepingNamer& namer) : namer_(namer) {}
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    return namer_.name(frames);
  }

 private:
  KeepingNamer& namer_;
};

std::string text_of(const NamedFrame& frame) {
  return frame.name + "|" + frame.module + "|" + frame.reason + "|" + frame.full_name + "|" + frame.build_id + "|" +
         frame.file + ":" + std::to_string(frame.line) + (frame.inlined ? "|i" : "");
}

/// The content of an answer, node by node.
std::vector<std::string> described(const Profile& profile) {
  std::vector<std::string> lines;
  for (const ProfileNode& node : profile.nodes) {
    lines.push_back(text_of(profile.frames[node.frame]) + " below " + std::to_string(node.parent) + " " +
                    std::to_string(node.self_samples) + "/" + std::to_string(node.total_samples));
  }
  lines.push_back(std::to_string(profile.quality.whole) + " whole, " +
                  std::to_string(profile.quality.truncated_total()) + " cut");
  return lines;
}

std::vector<std::string> described(const ProfileDiff& diff) {
  std::vector<std::string> lines;
  for (const DiffNode& node : diff.nodes) {
    lines.push_back(text_of(diff.frames[node.frame]) + " below " + std::to_string(node.parent) + " " +
                    std::to_string(node.before.self_samples) + "/" + std::to_string(node.before.total_samples) + " " +
                    std::to_string(node.after.self_samples) + "/" + std::to_string(node.after.total_samples));
  }
  return lines;
}

std::string first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string x = i < a.size() ? a[i] : "nothing";
    const std::string y = i < b.size() ? b[i] : "nothing";
    if (x != y) return std::string(x).append(" and ").append(y);
  }
  return {};
}

struct Asker {
  const TestStore& store;
  FrameNamer& namer;

  [[nodiscard]] Profile operator()(const Selection& selection, const ProfileOptions& options = {}) const {
    QueryBudget unlimited;
    return build_profile(store.store.snapshot(), selection, options, namer, unlimited).value();
  }
  [[nodiscard]] ProfileDiff operator()(const Selection& before, const Selection& after,
                                       const ProfileOptions& options) const {
    QueryBudget unlimited;
    return build_diff(store.store.snapshot(), before, after, options, {}, namer, unlimited).value();
  }
};

TEST_CASE("names from one query are reused in the next") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  store.add({code(0x11), code(0x21), code(0x31)});
  const std::vector<std::string> first = described(ask({store.everything()}));
  CHECK(namer.asked == 3);
  CHECK(described(ask({store.everything()})) == first);
  CHECK(namer.asked == 3);

  store.add({code(0x11), code(0x42)});
  CHECK(folded(ask({store.everything()})) ==
        std::vector<std::string>{"all;worker (100);f1;f2;f3 1", "all;worker (100);f1;f4 1"});
  CHECK(namer.asked == 4);
}

TEST_CASE("a name that may change is looked up each time, and every name in another edition") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  const Selection everything{store.everything()};
  store.add({code(0x11), code(0x21), code(0x31)});
  namer.names[code(0x21)] = {"[unknown]", "lib", FrameKind::kUnknown, "not read yet"};
  CHECK(folded(ask(everything)) == std::vector<std::string>{"all;worker (100);f1;[unknown];f3 1"});
  CHECK(namer.asked == 3);
  namer.names[code(0x21)] = {"known", "lib", FrameKind::kNative, ""};
  namer.names[code(0x31)] = {"renamed", "lib", FrameKind::kNative, ""};
  CHECK(folded(ask(everything)) == std::vector<std::string>{"all;worker (100);f1;known;f3 1"});
  CHECK(namer.asked == 4);
  ++namer.edition_now;
  CHECK(folded(ask(everything)) == std::vector<std::string>{"all;worker (100);f1;known;renamed 1"});
  CHECK(namer.asked == 7);
}

TEST_CASE("equal places in different builds of a file are different functions, equal names are one") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  const auto functions = [&](FrameKind kind, const std::string& name) {
    for (const std::uint64_t at : {std::uint64_t{0x21}, std::uint64_t{0x31}}) {
      namer.names[code(at)] = {name, "lib", kind, kind == FrameKind::kUnnamed ? "stripped" : ""};
      namer.names[code(at)].build_id = at == 0x21 ? "0a" : "0b";
    }
    ++namer.edition_now;
    return folded(ask({store.everything()})).size();
  };
  store.add({code(0x21)});
  store.add({code(0x31)});
  CHECK(functions(FrameKind::kNative, "f") == 1);
  CHECK(functions(FrameKind::kUnnamed, "[lib+0x20]") == 2);
}

TEST_CASE("an address that got the name of another in its query has it next time too") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  const auto shared = std::make_shared<const InlineChain>(1, NamedFrame{"stub", "", FrameKind::kJit, ""});
  namer.shared = shared;
  const auto stack = [](std::uint64_t offset) { return std::vector<Frame>{code(0x11), code(offset)}; };
  store.add(stack(0x100));
  CHECK(folded(ask({store.everything()})) == std::vector<std::string>{"all;worker (100);f1;stub 1"});
  // The name is built anew, and the first address that gets it was not known.
  namer.shared = std::make_shared<const InlineChain>(*shared);
  store.add(stack(0x200));
  store.add(stack(0x100));
  const std::vector<std::string> both{"all;worker (100);f1;stub 3"};
  CHECK(folded(ask({store.everything()})) == both);
  store.add({code(0x31), code(0x42)});
  CHECK(folded(ask({store.everything()})) ==
        std::vector<std::string>{"all;worker (100);f1;stub 3", "all;worker (100);f3;f4 1"});
}

TEST_CASE("a function's details are those of its addresses in the answer, whatever earlier queries had") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  store.add({code(0x11), code(0x21)});
  store.pass_minutes(3);
  const WallTime later = store.clock.wall();
  store.add({code(0x11), code(0x23)});
  const Selection recent{{later, store.everything().to}};
  const auto line_of_f2 = [](const Profile& profile) { return profile.frames[profile.nodes.back().frame].line; };
  CHECK(line_of_f2(ask(recent)) == 3);
  CHECK(line_of_f2(ask({store.everything()})) == 0);
  CHECK(line_of_f2(ask(recent)) == 3);
}

TEST_CASE("an answer is the same with and without a kept index, while stacks come and go") {
  const auto seed = GENERATE(1U, 2U, 3U);
  std::mt19937 random(seed);
  const auto any = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  Limits limits;
  limits.retention_ns = 5 * kNsPerMinute;
  TestStore store(limits);
  KeepingNamer namer;
  ForgetfulNamer forgetful(namer);
  const Asker ask{store, namer};
  const Asker ask_anew{store, forgetful};
  std::uint64_t generation = 0;
  for (int round = 0; round < 60; ++round) {
    for (std::uint32_t samples = any(40); samples > 0; --samples) {
      std::vector<Frame> frames;
      for (std::uint32_t depth = any(6); depth > 0; --depth) {
        const bool kernel = depth < 3 && any(3) == 0;
        // Old frames go with their minutes, and their ids are reused.
        frames.push_back({kernel ? kKernelModule : ModuleId{16 + any(2)}, (generation + any(4)) * 16 + any(16)});
      }
      const bool cut = any(5) == 0;
      store.add(std::move(frames), {100 + static_cast<std::int32_t>(any(3)), 5000},
                cut ? std::optional(Truncation::kDepthLimit) : std::nullopt);
    }
    if (any(2) == 0) store.pass_minutes(any(3));
    if (any(3) == 0) generation += 2;
    if (any(10) == 0) {
      const Frame renamed{ModuleId{16}, generation * 16 + any(16)};
      namer.names[renamed] = {"jit" + std::to_string(round), "", FrameKind::kJit, ""};
      ++namer.edition_now;
    }

    Selection selection{store.everything()};
    if (any(3) == 0) selection.processes.push_back({100, {}});
    if (any(3) == 0) selection.window.from = {store.clock.wall().ns - 2 * kNsPerMinute};
    ProfileOptions options;
    if (any(3) == 0) options.group = Group::kNone;
    if (any(4) == 0) options.delimited = true;
    if (any(4) == 0) options.inlines = false;
    if (any(4) == 0) options.max_nodes = 5;
    if (any(4) == 0) selection.side = any(2) == 0 ? Side::kUser : Side::kKernel;
    INFO("seed " << seed << ", round " << round);
    const std::string in_profile =
        first_difference(described(ask(selection, options)), described(ask_anew(selection, options)));
    CAPTURE(in_profile);
    CHECK(in_profile.empty());
    options.max_nodes = 0;
    Selection before{store.everything()};
    if (any(3) == 0) before.side = Side::kUser;
    const std::string in_diff =
        first_difference(described(ask(before, selection, options)), described(ask_anew(before, selection, options)));
    CAPTURE(in_diff);
    CHECK(in_diff.empty());
  }
  CHECK(store.store.stats().slots_dropped_for_age > 5);
}

TEST_CASE("a query while the index is in use is answered as well") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  store.add({code(0x11), code(0x21)});
  std::vector<std::string> meanwhile;
  namer.while_naming = [&] { std::thread([&] { meanwhile = described(ask({store.everything()})); }).join(); };
  const std::vector<std::string> answer = described(ask({store.everything()}));
  CHECK(meanwhile == answer);
}

TEST_CASE("an index that a query left incomplete for lack of memory is not reused") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  store.add({code(0x11), code(0x21)});
  static_cast<void>(ask({store.everything()}));
  REQUIRE(namer.index.used_bytes() > 0);
  store.add({code(0x11), code(0x31)});
  namer.while_naming = [] { throw std::bad_alloc(); };
  CHECK_THROWS_AS(ask({store.everything()}), std::bad_alloc);
  CHECK(namer.index.used_bytes() == 0);
  CHECK(folded(ask({store.everything()})).size() == 2);
}

TEST_CASE("the index is freed after a minute without queries, and when memory is short") {
  TestStore store;
  KeepingNamer namer;
  const Asker ask{store, namer};
  store.add({code(0x11), code(0x21)});
  const std::vector<std::string> answer = described(ask({store.everything()}));
  CHECK(namer.index.used_bytes() > 0);
  store.pass(59);
  CHECK_FALSE(namer.index.drop_unused(store.clock.monotonic()));
  CHECK(namer.index.used_bytes() > 0);
  store.pass(2);
  CHECK(namer.index.drop_unused(store.clock.monotonic()));
  CHECK(namer.index.used_bytes() == 0);
  CHECK_FALSE(namer.index.drop());

  CHECK(described(ask({store.everything()})).size() == answer.size());
  CHECK(namer.asked == 4);
  CHECK(namer.index.used_bytes() > 0);
  CHECK(namer.index.drop());
  CHECK(namer.index.used_bytes() == 0);
  CHECK(store.profile().nodes.size() == 4);
}

TEST_CASE("an answer outlives its index") {
  TestStore store;
  std::optional<Profile> profile;
  {
    KeepingNamer namer;
    store.add({code(0x11), code(0x12), code(0x21)});
    profile = Asker{store, namer}({store.everything()});
  }
  CHECK(folded(*profile) == std::vector<std::string>{"all;worker (100);f1;f1;f2 1"});
}

}  // namespace
}  // namespace flamed::store::test
