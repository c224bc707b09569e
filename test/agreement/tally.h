// SPDX-License-Identifier: Apache-2.0
//
// Tally: what comparing flamed's reading with libdw's came to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace flamed::agreement {

struct Difference {
  static constexpr std::size_t kExamples = 2;

  std::uint64_t count = 0;
  std::vector<std::string> examples;  ///< the first ones
};

/// By what differs, or why.
using Differences = std::map<std::string, Difference>;

struct Tally {
  std::uint64_t compared = 0;  ///< equal, explained or unexplained
  std::uint64_t equal = 0;
  Differences explained;
  Differences unexplained;

  void add_equal() {
    ++compared;
    ++equal;
  }
  /// `reason`: why both may say different things here, one that the code that calls this has checked.
  void add_explained(const std::string& reason, std::string example) {
    ++compared;
    add(explained[reason], 1, std::move(example));
  }
  void add_unexplained(const std::string& what, std::string example) {
    ++compared;
    add(unexplained[what], 1, std::move(example));
  }
  void add(const Tally& other) {
    compared += other.compared;
    equal += other.equal;
    for (const auto& [reason, difference] : other.explained) add(explained[reason], difference);
    for (const auto& [what, difference] : other.unexplained) add(unexplained[what], difference);
  }

 private:
  static void add(Difference& to, std::uint64_t count, std::string example) {
    to.count += count;
    if (to.examples.size() < Difference::kExamples) to.examples.push_back(std::move(example));
  }
  static void add(Difference& to, const Difference& from) {
    to.count += from.count;
    for (const std::string& example : from.examples) add(to, 0, example);
  }
};

}  // namespace flamed::agreement
