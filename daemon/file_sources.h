// SPDX-License-Identifier: Apache-2.0
//
// FileSources: the API's Sources over one file of minutes. Any thread, once the file was read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/sources.h"
#include "archive/files/sqlite.h"
#include "archive/reading/file_facts.h"
#include "archive/reading/past.h"
#include "base/clock.h"
#include "base/result.h"
#include "daemon/history/history_namer.h"
#include "store/index/kept_index.h"
#include "store/ring/snapshot.h"

namespace flamed::daemon {

/// Stands at the end of a file: "now" is the last that the file knows of. Deadlines go on.
class FileClock final : public Clock {
 public:
  /// Or up to a millisecond later: requests know "now" in whole ones, and windows end there at the latest.
  void stop_at(WallTime end) { end_.ns = (end.ns + kNsPerMs - 1) / kNsPerMs * kNsPerMs; }
  [[nodiscard]] MonotonicTime monotonic() const override { return running_.monotonic(); }
  [[nodiscard]] WallTime wall() const override { return end_; }
  [[nodiscard]] std::int64_t boottime_ns() const override { return running_.boottime_ns(); }

 private:
  const SystemClock running_{};
  WallTime end_;
};

/// Names what stands for no code: the file has all other names.
class MarkerNamer final : public store::FrameNamer {
 public:
  explicit MarkerNamer(std::size_t kept_bytes) : index_(kept_bytes) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;
  [[nodiscard]] store::KeptIndex* kept_index() override { return &index_; }

 private:
  store::KeptIndex index_;
};

class FileSources final : public api::Sources {
 public:
  /// `name` is for people. Nothing else may be asked before read().
  FileSources(std::string name, std::size_t kept_bytes) : name_(std::move(name)), markers_(kept_bytes) {}

  /// `connection` is one of archive::connect_unread(). An Error says why the file can't be used.
  Status read(archive::Connection connection);
  [[nodiscard]] const archive::FileFacts& facts() const { return facts_; }

  [[nodiscard]] store::Snapshot await_snapshot() const override { return *nothing_; }
  [[nodiscard]] store::Snapshot with_history(const store::Snapshot& snapshot,
                                             std::span<const store::WallWindow> windows,
                                             const store::Detail& detail) const override;
  [[nodiscard]] std::uint64_t await_revision() const override { return 0; }
  [[nodiscard]] store::FrameNamer& namer() override { return *namer_; }
  [[nodiscard]] api::Health health() const override;
  [[nodiscard]] std::vector<api::Metric> metrics() const override;
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  [[nodiscard]] std::optional<api::HistoryFile> file() const override;
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] double frequency_hz() const override;
  [[nodiscard]] WallTime started() const override { return facts_.stretch.from; }
  [[nodiscard]] std::size_t cpus() const override { return facts_.cpus; }
  /// Pids are those of another time, or of another host.
  [[nodiscard]] std::optional<std::uint32_t> user_of(std::int32_t /*pid*/) const override { return std::nullopt; }
  [[nodiscard]] api::CpuAccount machine_cpu(const store::WallWindow& window) const override;
  [[nodiscard]] api::CpuAccount process_cpu(const store::WallWindow& window,
                                            const store::ProcessInfo& process) const override;

 private:
  const std::string name_;
  FileClock clock_;
  MarkerNamer markers_;
  archive::FileFacts facts_;
  // Set by read().
  std::unique_ptr<archive::Past> past_;
  std::optional<HistoryNamer> namer_;
  std::optional<store::Snapshot> nothing_;  ///< without samples
};

}  // namespace flamed::daemon
