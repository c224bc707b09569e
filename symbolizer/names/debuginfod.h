// SPDX-License-Identifier: Apache-2.0
//
// Debuginfod: separate debug files from servers of a distribution or a company (https://sourceware.org/elfutils/), by
// build-id. A separate thread fetches one file after the other, so that no other thread waits for the network.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "symbolizer/model/remote_debug_files.h"

namespace flamed::symbolizer {

/// Any thread. The clock must outlive it.
class Debuginfod final : public RemoteDebugFiles {
 public:
  /// Fetches one file. May take minutes; ends when stop is requested.
  using Fetch = std::function<Result<Fd>(const std::string& build_id, const std::stop_token& stop)>;

  struct Options {
    std::size_t max_waiting = 256;  ///< build-ids in the queue; more are refused until there is room
    std::size_t max_known = 4096;   ///< build-ids with a known result
    /// A server without the file, or one that was not reachable, is asked again after this time.
    std::int64_t ask_again_after_ns = 60 * kNsPerMinute;
  };

  Debuginfod(Fetch fetch, const Clock& clock) : Debuginfod(std::move(fetch), clock, Options()) {}
  Debuginfod(Fetch fetch, const Clock& clock, Options options);

  Answer find(const std::string& build_id) override;

  struct Stats {
    std::uint64_t fetched = 0;
    std::uint64_t failed = 0;  ///< not found, or not reachable
    std::size_t waiting = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Known {
    bool waiting = true;
    Fd file;  ///< fetched, for the first caller
    MonotonicTime failed_at;
  };
  void run(const std::stop_token& stop);

  const Fetch fetch_;
  const Clock& clock_;
  const Options options_;

  mutable std::mutex mutex_;  ///< guards the members below; not held while a file is fetched
  std::condition_variable_any changed_;
  std::deque<std::string> waiting_;
  std::unordered_map<std::string, Known> known_;
  Stats stats_;

  std::jthread thread_;  ///< last member: destroyed first
};

/// Fetches with libdebuginfod, which caches files in `cache_folder` and cleans up there by itself. Loads the library:
/// an error if it isn't installed. `urls` are separated by spaces. Call it before other threads start: the library
/// reads both from the environment.
Result<Debuginfod::Fetch> load_libdebuginfod(const std::string& urls, const std::string& cache_folder);

}  // namespace flamed::symbolizer
