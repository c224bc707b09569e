// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/frame_namer.h"

#include <memory>
#include <utility>
#include <vector>

#include "store/model/wait_reason.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

using store::FrameKind;
using symbolizer::Symbol;
using symbolizer::SymbolKind;

/// Returns the chains that a test set, by the frame's offset.
class FakeSymbolizer final : public symbolizer::Symbolizer {
 public:
  explicit FakeSymbolizer(std::vector<symbolizer::SymbolChain> chains) {
    for (symbolizer::SymbolChain& chain : chains) {
      chains_.push_back(std::make_shared<const symbolizer::SymbolChain>(std::move(chain)));
    }
  }
  std::vector<symbolizer::SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
    std::vector<symbolizer::SymbolChainPtr> answer;
    for (const Frame& frame : frames) answer.push_back(chains_.at(frame.offset));
    return answer;
  }

 private:
  std::vector<symbolizer::SymbolChainPtr> chains_;
};

Frame frame(std::uint64_t offset) { return {ModuleId{16}, offset}; }

TEST_CASE("why a thread waits is a frame that no symbolizer is asked about") {
  FakeSymbolizer symbolizer({{Symbol{"f", "lib", SymbolKind::kNative, ""}}});
  FrameNamer namer(symbolizer, 0);
  const auto chains = namer.name(std::vector{store::wait_frame(store::WaitReason::kRunQueue), frame(0)});
  REQUIRE(chains.size() == 2);
  CHECK(chains[0]->front().name == "[run_queue]");
  CHECK(chains[0]->front().kind == FrameKind::kKernel);
  CHECK(chains[1]->front().name == "f");
}

TEST_CASE("the holder of a lock is named by its kept name and its number, or by the number alone") {
  struct KeptNames final : symbolizer::Symbolizer {
    std::vector<symbolizer::SymbolChainPtr> symbolise(std::span<const Frame> frames) override {
      std::vector<symbolizer::SymbolChainPtr> answer;
      for (const Frame& asked : frames) {
        const bool is_kept = asked == Frame{kRuntimeModule, 3U << 24};
        answer.push_back(std::make_shared<const symbolizer::SymbolChain>(symbolizer::SymbolChain{
            Symbol{is_kept ? "worker" : "[runtime]", "", SymbolKind::kUnknown, is_kept ? "" : "not kept any more"}}));
      }
      return answer;
    }
  } names;
  FrameNamer namer(names, 0);
  const auto chains =
      namer.name(std::vector{store::holder_frame(3, 4711), store::holder_frame(0, 12), store::holder_frame(9, 13)});
  REQUIRE(chains.size() == 3);
  CHECK(chains[0]->front().name == "[held by worker (4711)]");
  CHECK(chains[0]->front().kind == FrameKind::kKernel);
  CHECK(chains[1]->front().name == "[held by thread 12]");
  CHECK(chains[2]->front().name == "[held by thread 13]");
}

TEST_CASE("every kind of symbol becomes the same kind of frame") {
  const std::vector<std::pair<SymbolKind, FrameKind>> kinds{{SymbolKind::kKernel, FrameKind::kKernel},
                                                            {SymbolKind::kNative, FrameKind::kNative},
                                                            {SymbolKind::kVdso, FrameKind::kVdso},
                                                            {SymbolKind::kJit, FrameKind::kJit},
                                                            {SymbolKind::kUnknown, FrameKind::kUnknown}};
  for (const auto& [from, to] : kinds) {
    FakeSymbolizer symbolizer({{Symbol{"f", "lib", from, "why"}}});
    FrameNamer namer(symbolizer, 0);
    const auto chains = namer.name(std::vector{frame(0)});
    REQUIRE(chains.size() == 1);
    CHECK(*chains[0] == store::InlineChain{{"f", "lib", to, "why"}});
  }
}

TEST_CASE("each frame gets its chain, in order, with inlined calls outermost first") {
  FakeSymbolizer symbolizer(
      {{Symbol{"outer", "a", SymbolKind::kNative, ""}, Symbol{"inner", "a", SymbolKind::kNative, ""}},
       {Symbol{"other", "b", SymbolKind::kNative, ""}}});
  FrameNamer namer(symbolizer, 0);
  const auto chains = namer.name(std::vector{frame(1), frame(0), frame(1)});
  REQUIRE(chains.size() == 3);
  CHECK(chains[0]->at(0).name == "other");
  REQUIRE(chains[1]->size() == 2);
  CHECK(chains[1]->at(0).name == "outer");
  CHECK(chains[1]->at(1).name == "inner");
  CHECK(chains[2] == chains[0]);
}

TEST_CASE("without frames there are no chains") {
  FakeSymbolizer symbolizer({});
  FrameNamer namer(symbolizer, 0);
  CHECK(namer.name({}).empty());
}

}  // namespace
}  // namespace flamed::daemon
