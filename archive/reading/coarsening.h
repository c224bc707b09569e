// SPDX-License-Identifier: Apache-2.0
//
// Coarsening: the minutes of a database that is not written any more as stretches of ten minutes, in a database beside
// it (unfinished_path()). Threads are not told apart in it, nor addresses of frames that have the same names; sums are
// copied, or made anew in a session in which they are damaged or don't have all minutes. A bit at a time, since a busy
// host's six hours take a second.
//
//   Result<std::unique_ptr<Coarsening>> coarsening = Coarsening::begin(folder, number);
//   while (!*(*coarsening)->step()) ...
//   archive.add_stretches(number);
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/stack_places.h"
#include "archive/files/period_file.h"
#include "archive/files/period_reader.h"
#include "archive/numbering/sums.h"
#include "archive/reading/minute_index.h"
#include "archive/reading/renumbering.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"

namespace flamed::archive {

class Coarsening {
 public:
  /// An Error with code EBADMSG or ENOTSUP: something of it but sums can't be read. Likewise step().
  static Result<std::unique_ptr<Coarsening>> begin(const std::string& folder, std::uint64_t number);
  /// Removes the new database, unless it is whole.
  ~Coarsening();
  Coarsening(const Coarsening&) = delete;
  Coarsening& operator=(const Coarsening&) = delete;

  /// Reads one more minute. True: the new database is whole, on the disk, and was read: it has all samples of the old
  /// one.
  Result<bool> step();

 private:
  Coarsening(std::string folder, std::uint64_t number);

  Status create();
  Status begin_session(const MinuteIndex::SessionKey& session);
  [[nodiscard]] bool has_whole_sums(const MinuteIndex::SessionKey& session);
  Status copy_sums(std::int64_t session);
  Status write_sum(const std::optional<Sum>& sum);
  Status read_minute(const MinuteIndex::Row& row);
  Status write_stretch();
  Status write_states();
  Status end_session();
  Status finish();

  const std::string folder_;
  const std::uint64_t number_;
  const std::string path_;
  MinuteIndex index_;
  std::vector<MinuteIndex::Row> rows_;  ///< of the database, without minutes that were written again elsewhere
  std::size_t next_ = 0;                ///< in rows_
  PeriodReader* reader_ = nullptr;      ///< of index_
  Fd file_;
  std::unique_ptr<PeriodFile> into_;
  std::optional<Renumbering> renumbering_;              ///< of the session
  StackPlaces places_;                                  ///< in the new database, likewise
  std::int64_t read_until_ = 0;                         ///< the row up to which its dictionary was read
  std::optional<Minute> stretch_;                       ///< that was begun
  PeriodFile::LaterBlock last_;                         ///< the last stretch that was written
  std::unordered_map<ProcessId, ProcessState> states_;  ///< the latest of the session
  /// Of the session, if its sums are made anew.
  struct NewSums {
    Sums sums;
    Sums::Dictionary dictionary;
    std::vector<store::Gap> gaps;  ///< since the minute before
  };
  std::optional<NewSums> new_sums_;
  std::uint64_t samples_ = 0;
  bool is_whole_ = false;
};

}  // namespace flamed::archive
