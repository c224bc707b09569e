// SPDX-License-Identifier: Apache-2.0
//
// The answers of the calls as values, and as bytes (querier.proto and types.proto of Pyroscope). Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/querier/call_request.h"
#include "api/querier/labels.h"

namespace flamed::api {

struct TypesAnswer {
  std::span<const ProfileType> types{};
};

/// Names of labels, or their values.
struct NamesAnswer {
  std::vector<std::string> names{};
};

struct Label {
  std::string name;
  std::string value;

  friend auto operator<=>(const Label&, const Label&) = default;
};
using Labels = std::vector<Label>;

struct LabelSetsAnswer {
  std::vector<Labels> sets{};
};

struct SeriesPoint {
  double value = 0;          ///< CPU time in the step, in nanoseconds
  std::int64_t time_ms = 0;  ///< the end of the step
};

struct LabelledSeries {
  Labels labels{};
  std::vector<SeriesPoint> points{};
};

struct SeriesAnswer {
  std::vector<LabelledSeries> series{};
};

/// A flame graph by levels from the root on. A level has four numbers for each of its bars, from left to right: the
/// distance from the end of the one before, its total, its own part, which lies left of its children, and the index of
/// its name. The first name is that of the root.
struct LevelsAnswer {
  std::vector<std::string> names{};
  std::vector<std::vector<std::int64_t>> levels{};
  std::int64_t total = 0;
  std::int64_t max_self = 0;
};

struct StatsAnswer {
  bool has_data = false;
  std::int64_t oldest_ms = 0;
  std::int64_t newest_ms = 0;
};

std::string encode(const TypesAnswer& answer, CallEncoding encoding);
std::string encode(const NamesAnswer& answer, CallEncoding encoding);
std::string encode(const LabelSetsAnswer& answer, CallEncoding encoding);
std::string encode(const SeriesAnswer& answer, CallEncoding encoding);
std::string encode(const LevelsAnswer& answer, CallEncoding encoding);
std::string encode(const StatsAnswer& answer, CallEncoding encoding);

}  // namespace flamed::api
