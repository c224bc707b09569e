// SPDX-License-Identifier: Apache-2.0
//
// Parameters: what a query may say, as a table, and what one query said, as typed values. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/problem.h"
#include "api/request_target.h"
#include "api/time_expression.h"
#include "base/result.h"
#include "store/query.h"

namespace flamed::api {

enum class ParameterType : std::uint8_t {
  kTime,     ///< see parse_time()
  kProcess,  ///< see parse_process()
  kChoice,   ///< one of `choices`
};

/// One row of a table: a parameter that an endpoint takes. All of them are optional and may be given once.
struct ParameterSpec {
  std::string_view name;
  ParameterType type;
  std::string_view description;
  std::span<const std::string_view> choices;  ///< for kChoice; the first is the default
};

/// "123": every process that had the pid in the window. "123@4567": the one that started 4567 ticks after boot.
Result<store::ProcessSelector> parse_process(std::string_view text);

/// The values of one query. Asking for a parameter that the table does not have, or by another type than its row says,
/// is a broken invariant and aborts.
class Parameters {
 public:
  /// Refuses, by name: what the table does not have, what is given twice, and what is not of the type's form.
  static std::variant<Parameters, Problem> parse(std::span<const ParameterSpec> table, std::span<const QueryItem> query,
                                                 const TimeContext& context);

  [[nodiscard]] std::optional<WallTime> time(std::string_view name) const;
  [[nodiscard]] std::optional<store::ProcessSelector> process(std::string_view name) const;
  [[nodiscard]] std::string_view choice(std::string_view name) const;

 private:
  using Value = std::variant<WallTime, store::ProcessSelector, std::string_view>;

  explicit Parameters(std::span<const ParameterSpec> table) : table_(table) {}
  [[nodiscard]] const ParameterSpec& row(std::string_view name, ParameterType type) const;

  std::span<const ParameterSpec> table_;
  std::map<std::string_view, Value> values_;  ///< by the name in the table
};

}  // namespace flamed::api
