// SPDX-License-Identifier: Apache-2.0
//
// PeriodReader: the SQLite database of one period, open for reading, also while a PeriodFile writes it: then as it was
// at the first look. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/files/sqlite.h"
#include "base/clock.h"
#include "base/result.h"

namespace flamed::archive {

class PeriodReader {
 public:
  /// An Error with code EBADMSG: it is damaged; ENOTSUP: it has another version, or is no history.
  static Result<PeriodReader> open(const std::string& path);
  /// The same, of a connection of connect_unread(). Looks at all pages first.
  static Result<PeriodReader> begin(Connection connection);

  /// Of the whole database.
  Result<std::uint64_t> bytes();

  struct SessionRow {
    std::int64_t id = 0;
    std::string boot_id;
    std::int64_t run = 0;
    std::string program;
    std::string host;  ///< empty: not known
  };
  Result<std::vector<SessionRow>> sessions();

  struct MinuteRow {
    std::int64_t id = 0;
    std::int64_t session = 0;
    std::uint32_t sequence = 0;
    WallTime start, end;
    std::optional<std::uint32_t> first{};       ///< Minute::first
    std::optional<std::uint32_t> names_from{};  ///< PeriodFile::Blocks::names_from
  };
  /// Those with a higher id than `after`, ascending.
  Result<std::vector<MinuteRow>> minutes(std::int64_t after);

  struct SumRow {
    std::int64_t id = 0;
    std::int64_t session = 0;
    std::uint32_t first = 0, last = 0;  ///< sequences of minutes
    WallTime start, end;
  };
  /// Likewise, of sums. Also of a file of a flamed that kept none.
  Result<std::vector<SumRow>> sums(std::int64_t after);

  /// visit(minute, block) returns what is wrong with the block. A block that belongs to another minute is an Error with
  /// code EBADMSG.
  using Visit = std::function<Status(std::int64_t, std::span<const std::byte>)>;
  /// Of the session's minutes in (after, until], ascending. Stops at the first Error.
  Status for_each_additions(std::int64_t session, std::int64_t after, std::int64_t until, const Visit& visit);
  Status for_each_names(std::int64_t session, std::int64_t after, std::int64_t until, const Visit& visit);
  /// All of the session. Also of a file of a flamed that kept none.
  Status for_each_states(std::int64_t session, const Visit& visit);
  Status pairs_of(std::int64_t minute, const Visit& visit);
  Status names_of(std::int64_t minute, const Visit& visit);
  /// Also in a file of a flamed that kept no single samples.
  Status samples_of(std::int64_t minute, const Visit& visit);

  struct SumBlocks {
    std::span<const std::byte> additions, pairs;
    std::span<const std::byte> short_additions{}, short_pairs{};  ///< empty: none, or not asked for
  };
  /// visit(sum, blocks), of the session's sums in (after, until], ascending; otherwise as visit() of minutes.
  using VisitSum = std::function<Status(std::int64_t, const SumBlocks&)>;
  Status for_each_sum(std::int64_t session, std::int64_t after, std::int64_t until, bool with_short,
                      const VisitSum& visit);

  /// Looks at all pages: whether they are what SQLite wrote.
  Status check();

 private:
  explicit PeriodReader(Connection connection) : connection_(std::move(connection)) {}

  Status block_of(const std::string& table, std::int64_t minute, const Visit& visit);
  Status for_each(std::string_view table, Statement& statement, const Visit& visit);

  Connection connection_;
};

}  // namespace flamed::archive
