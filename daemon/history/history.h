// SPDX-License-Identifier: Apache-2.0
//
// History: writes sealed minutes to the archive, while they are in memory, with the names of their frames, and makes
// old ones coarser. The work of the `history` thread, which alone waits for the disk, besides threads that answer from
// it (archive::Past).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/names.h"
#include "archive/files/archive.h"
#include "archive/files/period_file.h"
#include "archive/numbering/numbering.h"
#include "archive/numbering/sums.h"
#include "archive/reading/coarsening.h"
#include "archive/reading/minute_index.h"
#include "archive/reading/past.h"
#include "base/clock.h"
#include "daemon/history/frame_names.h"
#include "store/model/selection.h"
#include "store/ring/store.h"
#include "symbolizer/model/module.h"
#include "symbolizer/model/symbol.h"

namespace flamed::daemon {

class History {
 public:
  /// All of them must outlive it.
  struct Parts {
    const store::Store& store;
    const symbolizer::Modules& modules;
    const Clock& clock;
    symbolizer::Symbolizer& symbolizer;
    std::function<bool()> may_name;  ///< false: no CPU time for it now
    /// Returns when all samples before that time are stored, or after a while.
    std::function<void(MonotonicTime)> await_samples;
    std::function<std::uint32_t()> cpus;  ///< that are sampled
    /// CPU time of the machine in the kernel's accounts; empty if it is not known.
    std::function<std::optional<std::uint64_t>(const store::WallWindow&)> machine_cpu_ns;
    std::function<bool(std::uint64_t address)> stays{};  ///< as in archive::Past::Options
  };
  /// `index`: see archive::Past.
  History(Parts parts, std::string folder, archive::Archive::Options options,
          std::future<archive::MinuteIndex> index = {});

  /// Writes each minute when it is sealed, and before, as it is so far, until `stop` is requested. Then what else is
  /// sealed, and the single samples of the last minutes.
  void run(const std::stop_token& stop);

  /// Writes all sealed minutes that are not written yet. After a failure the next call tries again.
  void write(const std::stop_token& stop = {});

  /// Writes the minute that is not over as it is so far, unless something before is not written or it has nothing.
  void write_so_far(const std::stop_token& stop = {});

  /// Puts stretches of ten minutes beside minutes, and in the place of old ones: a part of the work for one database,
  /// so that the next minute is not late.
  void coarsen();

  /// Writes the single samples of the last minutes, and their sum, with which the session ends.
  void end_session();

  /// Waits until run() has ended, but no longer than that. Any thread.
  void await_end(std::chrono::seconds most);

  /// What is on disk. Any thread.
  [[nodiscard]] archive::Past& past() { return past_; }

  struct State {
    archive::Archive::Stats archive;
    /// Why nothing can be written now, and since when.
    struct Problem {
      std::string reason;
      WallTime since;
    };
    std::optional<Problem> problem;
    /// Since when the disk has been asked to take something; empty: nobody waits for it.
    std::optional<WallTime> waits_since;
    std::uint64_t missed_minutes = 0;  ///< that memory dropped before they could be written, or that were too large
  };
  /// Any thread.
  [[nodiscard]] State state() const;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  using Ending = archive::Ending;

  class WaitForDisk;

  Status write(const store::Snapshot& snapshot, const store::Slot& slot, Ending ending, const std::stop_token& stop);
  void end_session(const store::Snapshot& snapshot);
  void write_samples(const store::Snapshot& snapshot);
  /// Of the minutes since the last one.
  void write_sum();
  /// Of processes of the minutes before. After a failure the next call tries again.
  void write_states();
  void keep_states(const archive::Additions& additions);
  [[nodiscard]] std::vector<std::byte> name_frames(const archive::Numbering::Numbered& numbered,
                                                   const std::stop_token& stop);
  [[nodiscard]] std::optional<std::uint32_t> names_from(const archive::Additions& additions) const;
  [[nodiscard]] archive::Module describe(ModuleId id) const;
  Status coarsen_next();
  void note(const Status& written);
  void note_wait(std::optional<WallTime> since);

  const Parts parts_;
  const std::string folder_;
  archive::Archive archive_;
  archive::Past past_;
  FrameNames names_;
  std::optional<archive::Numbering> numbering_;  ///< of the session
  std::optional<archive::Sums> sums_;            ///< of the session; empty: one of them could not be written
  std::vector<archive::Name> new_names_;         ///< since the last minute that is over
  /// By number: states of processes that an earlier minute has, since the last block of such.
  std::map<std::uint32_t, archive::ProcessState> later_states_;
  std::optional<archive::PeriodFile::LaterBlock> last_minute_;  ///< of the session that is over; without its block
  std::unique_ptr<archive::Coarsening> coarsening_;             ///< null: there is nothing to do
  std::uint64_t coarse_number_ = 0;                             ///< of its database
  std::optional<MonotonicTime> coarsen_after_;                  ///< it has failed: not before that time
  std::uint32_t written_ = 0;  ///< the sequence of the newest minute that was written, or can't be

  mutable std::mutex mutex_;  ///< guards state_, of which only this thread writes, and has_ended_
  State state_;
  bool has_ended_ = false;
  std::condition_variable ended_;
};

}  // namespace flamed::daemon
