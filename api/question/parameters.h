// SPDX-License-Identifier: Apache-2.0
//
// Parameters: a table of the parameters of a query, and the values of one query. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/problem.h"
#include "api/http/request_target.h"
#include "api/text/name_pattern.h"
#include "api/text/time_expression.h"
#include "base/result.h"
#include "store/model/selection.h"

namespace flamed::api {

enum class ParameterType : std::uint8_t {
  kTime,       ///< see parse_time()
  kProcesses,  ///< list of processes, see parse_process()
  kIntegers,   ///< list of whole numbers from `minimum` to `maximum`
  kTexts,      ///< list; each 1 to kMaxTextBytes long
  kChoice,     ///< one of `choices`
  kFlag,       ///< 1 or true, 0 or false
  kInteger,    ///< a whole number from `minimum` to `maximum`
  kNumber,     ///< a decimal number from `minimum` to `maximum`
  kDuration,   ///< 10s, 5m, 1h30m, or a number of seconds; `minimum` to `maximum` are seconds
  kPattern,    ///< see NamePattern
};
/// May a parameter of this type be given more than once? Numbers and processes of a list may also be separated by
/// commas.
bool is_list(ParameterType type);

/// One row of a table: a parameter that an endpoint takes. All of them are optional.
struct ParameterSpec {
  std::string_view name;
  ParameterType type;
  std::string_view description;
  std::span<const std::string_view> choices{};  ///< for kChoice; the first is the default
  double minimum = 0;
  double maximum = 0;
  std::string_view fallback{};  ///< the default as a client would write it; empty if there is none
};

inline constexpr std::size_t kMaxTextBytes = 1024;
/// Values of one list.
inline constexpr std::size_t kMostValues = 100;

/// "123": every process that had the pid in the window. "123@4567": the one that started 4567 ticks after boot.
Result<store::ProcessSelector> parse_process(std::string_view text);

/// The allowed values of the parameter, for people.
std::string allowed_values(const ParameterSpec& spec);

/// The values of one query. Reading a parameter that the table does not have, or as another type than its row's, is a
/// broken invariant and aborts.
class Parameters {
 public:
  /// Refuses unknown parameters, those given twice, and malformed values, and names the parameter.
  static std::variant<Parameters, Problem> parse(std::span<const ParameterSpec> table, std::span<const QueryItem> query,
                                                 const TimeContext& context);

  /// Does the table have such a row?
  [[nodiscard]] bool takes(std::string_view name) const;
  [[nodiscard]] bool given(std::string_view name) const { return values_.contains(name); }

  [[nodiscard]] std::optional<GivenTime> time(std::string_view name) const;
  [[nodiscard]] std::vector<store::ProcessSelector> processes(std::string_view name) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::string_view choice(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;  ///< the row's fallback if it is not given
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> duration_ns(std::string_view name) const;
  /// The row's fallback; empty if it has none.
  [[nodiscard]] std::optional<std::int64_t> default_duration_ns(std::string_view name) const;
  [[nodiscard]] std::optional<NamePattern> pattern(std::string_view name) const;

 private:
  using Value = std::variant<GivenTime, std::vector<store::ProcessSelector>, std::vector<std::int64_t>,
                             std::vector<std::string>, std::string_view, bool, std::int64_t, double, NamePattern>;

  explicit Parameters(std::span<const ParameterSpec> table) : table_(table) {}
  [[nodiscard]] const ParameterSpec& row(std::string_view name, ParameterType type) const;
  template <typename T>
  [[nodiscard]] const T* find(std::string_view name, ParameterType type) const;
  [[nodiscard]] std::optional<Problem> add(const ParameterSpec& spec, const std::string& text,
                                           const TimeContext& context);
  template <typename T>
  [[nodiscard]] std::optional<Problem> keep(const ParameterSpec& spec, std::variant<T, Problem> value);
  template <typename T>
  [[nodiscard]] std::optional<Problem> keep_in_list(const ParameterSpec& spec, std::variant<T, Problem> value);

  std::span<const ParameterSpec> table_;
  std::map<std::string_view, Value> values_;  ///< by the name in the table
};

}  // namespace flamed::api
