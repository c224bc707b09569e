// SPDX-License-Identifier: Apache-2.0
//
// MinuteIndex: which minutes the databases of a folder have, or a single one. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "archive/files/period_names.h"
#include "archive/files/period_reader.h"
#include "base/clock.h"
#include "base/result.h"

namespace flamed::archive {

class MinuteIndex {
 public:
  explicit MinuteIndex(std::string folder) : folder_(std::move(folder)) {}
  /// Of a database that nobody writes. It stays open.
  explicit MinuteIndex(PeriodReader only) { readers_.emplace(kOnly, std::move(only)); }

  /// Of a database, and the id of its row.
  struct SessionKey {
    Period file;
    std::int64_t id = 0;
    friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
  };
  struct Session {
    std::string boot_id;
    std::int64_t run = 0;
    std::string program;
    std::string host;  ///< empty: not known
  };
  struct Row {
    SessionKey session;
    std::int64_t id = 0;
    std::uint32_t sequence = 0;  ///< of the store's slot
    WallTime start, end;
    std::uint32_t ordinal = 0;             ///< of all rows, without gaps
    std::optional<std::uint32_t> first{};  ///< of a stretch: the sequence of its first minute

    [[nodiscard]] std::uint32_t first_sequence() const { return first.value_or(sequence); }
    [[nodiscard]] std::uint32_t minutes() const { return sequence - first_sequence() + 1; }
  };

  /// Of minutes that are among the rows.
  struct Sum {
    SessionKey session;
    std::int64_t id = 0;
    std::uint32_t first = 0, last = 0;  ///< sequences of its minutes
    WallTime start, end;
    std::int64_t newest_row = 0;  ///< the id of the last one's; 0: it is not there
    std::uint32_t ordinal = 0;    ///< of all sums, without gaps

    [[nodiscard]] bool has(const Row& row) const {
      return row.session == session && first <= row.sequence && row.sequence <= last && start <= row.start &&
             row.end <= end;
    }
  };

  /// Looks for new minutes and for databases that are gone. Opens databases only the first time. An Error: the folder
  /// can't be read.
  Status refresh();
  /// Why databases can't be read, of those that can't: damaged ones, such of another version, or the disk fails.
  [[nodiscard]] std::vector<Error> unusable() const;

  /// In the order in which they were written. A minute that was written before it was over is there once, but stretches
  /// and their minutes may both be there, and have the same sums: see counts().
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Likewise in their order.
  [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }
  /// Where a database has both, one of them counts.
  enum class Prefer : std::uint8_t { kMinutes, kStretches };
  [[nodiscard]] bool counts(const SessionKey& session, Prefer prefer) const;
  /// On the disk, with its part of the database's dictionary and names, on average.
  [[nodiscard]] std::uint64_t bytes_of(const Row& row) const;
  [[nodiscard]] const Session& session(const SessionKey& key) const { return sessions_.at(key); }
  /// Up to which row of the session names of the first `frames` frames come, at least `row`.
  [[nodiscard]] std::int64_t names_until(const SessionKey& session, std::int64_t row, std::uint32_t frames) const;
  /// False once its database is gone.
  [[nodiscard]] bool has(const SessionKey& key) const { return sessions_.contains(key); }
  [[nodiscard]] Result<PeriodReader*> reader(const Period& file);
  /// Closes all databases of a folder.
  void close() {
    if (!folder_.empty()) readers_.clear();
  }

 private:
  struct File {
    std::int64_t newest = 0;      ///< id of the last row that was read
    std::int64_t newest_sum = 0;  ///< likewise
    std::uint64_t bytes = 0;      ///< on the disk
    std::uint64_t rows = 0;       ///< of `bytes`
    std::optional<Error> problem{};
  };
  static constexpr Period kOnly{1};

  void read(const Period& period, File& file);
  void add_rows(const Period& period, File& file, const std::vector<PeriodReader::MinuteRow>& rows);
  void add_sums(const Period& period, File& file, const std::vector<PeriodReader::SumRow>& sums);
  [[nodiscard]] bool is_same_minute(const Row& a, const Row& b) const;
  void forget(const Period& period);

  std::string folder_;  ///< empty: a single database
  std::map<Period, File> files_;
  std::map<Period, PeriodReader> readers_;  ///< a few, open
  std::map<SessionKey, Session> sessions_;
  std::vector<Row> rows_;
  std::vector<Sum> sums_;
  struct LateNames {
    std::int64_t row = 0;
    std::uint32_t from = 0;  ///< the lowest frame
  };
  std::map<SessionKey, std::vector<LateNames>> late_names_;  ///< ascending
  std::uint32_t next_ordinal_ = 0, next_sum_ = 0;
};

/// Of a folder, read by a thread of its own, which nobody waits for who drops the future. Its databases are closed.
[[nodiscard]] std::future<MinuteIndex> read_index(std::string folder);

}  // namespace flamed::archive
