// SPDX-License-Identifier: Apache-2.0
#include "store/model/quality.h"

#include <set>
#include <string>

#include "store/model/profile.h"
#include "test/catch.h"

namespace flamed::store {

TEST_CASE("samples taken are those stored whole, stored truncated and lost") {
  Quality quality;
  quality.whole = 10;
  quality.truncated[0] = 2;
  quality.truncated[5] = 3;
  quality.lost[1] = 4;
  quality.lost[4] = 5;
  CHECK(quality.truncated_total() == 5);
  CHECK(quality.stored() == 15);
  CHECK(quality.lost_total() == 9);
  CHECK(quality.taken() == 24);
}

TEST_CASE("qualities add up reason by reason") {
  Quality a;
  a.whole = 1;
  a.truncated[2] = 2;
  a.lost[3] = 3;
  Quality b = a;
  b.lost[4] = 7;
  a += b;
  CHECK(a.whole == 2);
  CHECK(a.truncated[2] == 4);
  CHECK(a.lost[3] == 6);
  CHECK(a.lost[4] == 7);
}

TEST_CASE("every reason has a distinct metric name and a phrase") {
  std::set<std::string_view> truncations;
  for (std::size_t i = 0; i < kTruncationCount; ++i) {
    auto reason = static_cast<Truncation>(i);
    truncations.insert(name_of(reason));
    CHECK_FALSE(describe(reason).empty());
    CHECK(name_of(reason).find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
  }
  CHECK(truncations.size() == kTruncationCount);
  CHECK(truncations.count("unknown") == 0);
  std::set<std::string_view> losses;
  for (std::size_t i = 0; i < kLossCount; ++i) {
    auto reason = static_cast<Loss>(i);
    losses.insert(name_of(reason));
    CHECK_FALSE(describe(reason).empty());
    CHECK(name_of(reason).find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
  }
  CHECK(losses.size() == kLossCount);
  CHECK(losses.count("unknown") == 0);
}

TEST_CASE("every kind of frame has a name of its own") {
  std::set<std::string_view> names;
  for (auto kind : {FrameKind::kRoot, FrameKind::kNative, FrameKind::kKernel, FrameKind::kVdso, FrameKind::kJit,
                    FrameKind::kUnnamed, FrameKind::kUnknown, FrameKind::kMarker}) {
    names.insert(name_of(kind));
  }
  CHECK(names.size() == 8);
}

}  // namespace flamed::store
