// SPDX-License-Identifier: Apache-2.0
#include "api/querier/flame_levels.h"

#include "test/catch.h"

namespace flamed::api {
namespace {

using store::FrameKind;

/// total(2) > main(1) > {compute(4), parse(2) > inner(3)}, total > other_main(1); 10 ns a sample.
store::Profile example() {
  store::Profile profile;
  profile.period_ns = 10;
  for (const char* name : {"all", "main", "compute", "parse", "inner", "other_main"}) {
    profile.frames.push_back({name, "victim", name == std::string("all") ? FrameKind::kRoot : FrameKind::kNative, ""});
  }
  profile.nodes = {{0, 0, 2, 13}, {1, 0, 1, 10}, {2, 1, 4, 4}, {3, 1, 2, 5}, {4, 3, 3, 3}, {5, 0, 1, 1}};
  return profile;
}

using Levels = std::vector<std::vector<std::int64_t>>;

}  // namespace

TEST_CASE("levels have the bars of a flame graph from left to right") {
  const LevelsAnswer levels = flame_levels(example());
  CHECK(levels.names == std::vector<std::string>{"total", "main", "compute", "parse", "inner", "other_main"});
  // Own time lies left of the callees: main from 20 to 120, compute from 30 to 70, parse to 120, inner from 90 on.
  CHECK(levels.levels ==
        Levels{{0, 130, 20, 0}, {20, 100, 10, 1, 0, 10, 10, 5}, {30, 40, 40, 2, 0, 50, 20, 3}, {90, 30, 30, 4}});
  CHECK(levels.total == 130);
  CHECK(levels.max_self == 40);
}

TEST_CASE("a distance is that from the bar before, whichever caller that has") {
  store::Profile profile;
  profile.period_ns = 1;
  for (const char* name : {"a", "b", "leaf"}) profile.frames.push_back({name, "", FrameKind::kNative, ""});
  profile.frames.push_back({"all", "", FrameKind::kRoot, ""});
  profile.nodes = {{3, 0, 0, 9}, {0, 0, 1, 4}, {2, 1, 3, 3}, {1, 0, 2, 5}, {2, 3, 3, 3}};
  const LevelsAnswer levels = flame_levels(profile);
  CHECK(levels.levels == Levels{{0, 9, 0, 0}, {0, 4, 1, 1, 0, 5, 2, 2}, {1, 3, 3, 3, 2, 3, 3, 3}});
}

TEST_CASE("an empty profile has the root alone") {
  store::Profile profile;
  profile.period_ns = 10;
  profile.frames.push_back({"all", "", FrameKind::kRoot, ""});
  profile.nodes = {{0, 0, 0, 0}};
  const LevelsAnswer levels = flame_levels(profile);
  CHECK(levels.names == std::vector<std::string>{"total"});
  CHECK(levels.levels == Levels{{0, 0, 0, 0}});
  CHECK(levels.total == 0);
  CHECK(encode(levels, CallEncoding::kJson) ==
        R"({"flamegraph":{"names":["total"],"levels":[{"values":["0","0","0","0"]}]}})");
  CHECK(encode(levels, CallEncoding::kProtobuf) ==
        std::string("\x0a\x0f\x0a\x05total\x12\x06\x0a\x04\x00\x00\x00\x00", 17));
}

TEST_CASE("names are UTF-8 of one line, those that are pruned are other, and equal ones are told once") {
  store::Profile profile = example();
  store::FrameList frames;
  for (const char* name : {"all", "f", "f", "\xff\n", ""}) {
    frames.push_back({name, "", name == std::string("all") ? FrameKind::kRoot : FrameKind::kNative, ""});
  }
  frames.push_back({"(pruned: 3 functions)", "", FrameKind::kMarker, ""});
  profile.frames = std::move(frames);
  const LevelsAnswer levels = flame_levels(profile);
  CHECK(levels.names == std::vector<std::string>{"total", "f", "\xef\xbf\xbd_", "[unnamed]", "other"});
  CHECK(levels.levels[2][3] == 1);
}

}  // namespace flamed::api
