// SPDX-License-Identifier: Apache-2.0
//
// PeriodFile: a SQLite database of minutes, open for writing: of one period, or of minutes that are copied from
// several. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/codec/minute.h"
#include "archive/codec/sum.h"
#include "archive/files/sqlite.h"
#include "base/clock.h"
#include "base/result.h"

namespace flamed::archive {

/// Of PRAGMA user_version: the tables, and what their columns mean. Blocks have a version of their own.
inline constexpr std::int64_t kSchemaVersion = 1;

/// What was recorded, by the wall clock of each minute.
struct Recorded {
  WallTime first;             ///< the first minute's start
  WallTime last;              ///< the latest end
  std::int64_t total_ns = 0;  ///< of all minutes
};

class PeriodFile {
 public:
  /// Creates the file, readable for its group, if there is none. An Error with code EBADMSG: it is damaged; ENOTSUP: it
  /// has another version, and is unchanged.
  static Result<std::unique_ptr<PeriodFile>> open(const std::string& path);
  /// Makes the empty file a database that is complete in itself, without a log beside it. Until it is closed nobody
  /// else may use it, a crash may damage it, and it need not be on the disk.
  static Result<std::unique_ptr<PeriodFile>> create(const std::string& path);
  ~PeriodFile() = default;
  PeriodFile(const PeriodFile&) = delete;
  PeriodFile& operator=(const PeriodFile&) = delete;

  struct Session {
    std::string_view boot_id;
    std::int64_t run = 0;      ///< of the daemon that writes, a random number
    std::string_view program;  ///< name and version of what writes
    std::string_view host;     ///< may be empty
  };
  /// Later minutes belong to it. It is written with the first of them.
  void begin_session(Session session);

  struct Blocks {
    std::span<const std::byte> additions, pairs;
    std::span<const std::byte> names{};    ///< may be empty
    std::span<const std::byte> samples{};  ///< likewise
    /// The lowest frame in `names`, if an earlier minute has added it.
    std::optional<std::uint32_t> names_from{};
  };
  /// One transaction; when it returns, the minute is on the disk. On an Error nothing of it is.
  Status append(const Minute& minute, const Blocks& blocks, Ending ending = Ending::kOver);

  /// What is only known after a minute was written.
  struct LaterBlock {
    std::uint32_t sequence = 0;  ///< of a minute of the session
    WallTime start;              ///< likewise
    std::vector<std::byte> block;
  };
  /// One transaction. On an Error nothing of it is on the disk.
  Status add_samples(std::span<const LaterBlock> blocks);
  /// Likewise. Processes as they were by the end of the minute, which has one such block.
  Status add_states(const LaterBlock& block);

  /// One transaction. On an Error nothing of it is on the disk.
  Status add_sum(const SumBlocks& sum);

  /// Empty: no minutes.
  [[nodiscard]] const std::optional<Recorded>& recorded() const { return recorded_; }
  /// Of the database, with what is still in its write-ahead log.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The write-ahead log grows: another program reads all the time, so that it can't be copied into the database.
  [[nodiscard]] bool is_held() const;

 private:
  explicit PeriodFile(Connection connection) : connection_(std::move(connection)) {}

  Status prepare(const char* new_file, const char* settings);
  Status in_transaction(const std::function<Status()>& write);
  /// The id of its row.
  Result<std::int64_t> write(const Minute& minute, const Blocks& blocks);
  Status add_later(Statement& add, std::string_view table, const LaterBlock& block);
  Status measure();

  const Connection connection_;
  std::optional<Statement> add_session_, add_minute_, add_additions_, add_pairs_, add_names_, add_samples_,
      add_samples_later_, add_states_later_, add_sum_;
  std::string boot_id_, program_, host_;
  std::int64_t run_ = 0;
  std::optional<std::int64_t> session_;  ///< its row; empty: not written yet
  struct SoFar {
    std::uint32_t sequence = 0;
    std::int64_t id = 0;  ///< of its row
    std::int64_t length_ns = 0;
  };
  std::optional<SoFar> so_far_;  ///< of the session: the newest minute, if it is not over
  std::optional<Recorded> recorded_;
  std::uint64_t bytes_ = 0;
  int log_pages_ = 0;
};

/// What a minute's block in a table belongs to, see archive/codec/block.h.
[[nodiscard]] std::uint32_t stamp_of(std::string_view table, std::int64_t run, WallTime start);

/// The same of a sum of minutes, by their sequences.
[[nodiscard]] std::uint32_t stamp_of_sum(std::string_view column, std::int64_t run, WallTime start, std::int64_t first,
                                         std::int64_t last);

/// For reading, also while it is written. An Error with code EBADMSG: it is damaged; ENOTSUP: it has another version,
/// or is no history.
Result<Connection> connect_to_read(const std::string& path);

/// For reading a file that nobody writes and that is not believed: SQLite has it open, has read no more than its first
/// 100 bytes, and will open no other file. Then begin_to_read().
Result<Connection> connect_unread(const std::string& path);
/// Errors as of connect_to_read().
Status begin_to_read(sqlite3* connection);

/// Whether sessions say on which host they were: those of flamed's first files do not.
Result<bool> has_hosts(sqlite3* connection);

/// Whether minutes may be stretches: in flamed's first files none are.
Result<bool> has_stretches(sqlite3* connection);

/// Whether minutes may have single samples: in flamed's first files they have none.
Result<bool> has_samples(sqlite3* connection);

/// Whether minutes say from where on they name frames of earlier ones: in flamed's first files they do not.
Result<bool> has_names_from(sqlite3* connection);

/// Whether there may be later states of processes: in flamed's first files there are none.
Result<bool> has_states(sqlite3* connection);

/// Whether there may be sums of ten minutes: in flamed's first files there are none.
Result<bool> has_sums(sqlite3* connection);

/// An Error if there are damaged pages, wrong links between them, or rows that are none.
Status check_pages(sqlite3* connection);

/// Of a file that is not written any more. If it was not closed, because the daemon was killed, it is closed.
Result<std::optional<Recorded>> read_recorded(const std::string& path);

}  // namespace flamed::archive
