// SPDX-License-Identifier: Apache-2.0
//
// SourceExcerpt: lines of a source file near those with samples, safe to print. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::api {

struct SourceExcerpt {
  struct Line {
    std::uint32_t number = 0;  ///< from 1
    std::string text;
  };
  std::string module;
  std::string file;
  std::string reason{};       ///< why lines are missing, a phrase; empty: none is
  bool is_newer = false;      ///< the file may be another version than what runs
  std::vector<Line> lines{};  ///< ascending
};

/// All excerpts of an answer together.
inline constexpr std::size_t kMostExcerptBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMostSourceLineBytes = 400;

/// Adds lines of `text`, which may be any bytes: those of the ascending numbers `wanted`, with four before and after
/// each, as long as `room` allows, which shrinks. Tabs become blanks; see clean_line() for the rest.
void add_lines(std::string_view text, std::span<const std::uint32_t> wanted, std::size_t& room, SourceExcerpt& to);

}  // namespace flamed::api
