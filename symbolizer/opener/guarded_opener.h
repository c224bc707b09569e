// SPDX-License-Identifier: Apache-2.0
//
// GuardedOpener: opens files at paths that other users choose, without ever being held up by a file
// system that does not answer: a helper process does it all, and is left behind when it takes too long. Until that one
// comes back, and a while longer, what would most likely hold up the next one is refused at once: see Place.
//
// Any thread. Who asks waits while another one is answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/root_files.h"
#include "symbolizer/opener/open_helper.h"
#include "symbolizer/process/module_table.h"

namespace flamed::symbolizer {

class GuardedOpener final : public RootFiles {
 public:
  struct Options {
    std::string program = "/proc/self/exe";  ///< see OpenHelper::start()
    std::string proc = "/proc";
    std::int64_t limit_ns = 2 * kNsPerSecond;   ///< how long to wait for an answer
    std::int64_t quiet_ns = 30 * kNsPerSecond;  ///< how long to refuse after the file system has answered again
  };
  explicit GuardedOpener(const Clock& clock) : GuardedOpener(clock, Options()) {}
  GuardedOpener(const Clock& clock, Options options);
  ~GuardedOpener() override;
  GuardedOpener(const GuardedOpener&) = delete;
  GuardedOpener& operator=(const GuardedOpener&) = delete;

  // An error with code ETIMEDOUT: a file system does not answer, or did not a moment ago.

  /// What open_module() says. The file can be read from and closed.
  Result<Fd> open_module(const OpenRequest& request);
  /// What find_jit_files() says.
  Result<JitFiles> find_jit_files(const ProcessId& owner);
  /// What does not answer isn't there.
  std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) override;

  /// From now on nobody waits: those who do are refused, and so are later callers.
  void stop();

  struct Stats {
    std::size_t hung = 0;        ///< places that do not answer now
    std::uint64_t timeouts = 0;  ///< since start
    std::int64_t cpu_ns = 0;     ///< of all helpers since start
  };
  [[nodiscard]] Stats stats() const { return {hung_count_, timeouts_, cpu_ns_}; }

 private:
  /// What is refused together. Known before anything is opened: who is held up there may be gone afterwards.
  struct Place {
    std::string name;       ///< "device 0:45", "paths of user 1000", "files of user 1000", "folder /usr/lib/debug"
    std::string user;       ///< whose process it is for; empty: not known
    bool is_local = false;  ///< a mapped file on a disk of this machine: slow at most
  };
  /// A helper that waits for a file system, or did until a moment ago.
  struct Hung {
    OpenHelper helper;
    Place place;
    std::optional<MonotonicTime> quiet_until{};  ///< given: it has come back
  };
  /// A place that answers, but so slowly that others would wait for it all the time.
  struct Slow {
    std::string place;
    MonotonicTime until;
  };

  /// What a process sees of the file systems, or flamed itself where that has ended.
  struct View {
    std::string user;    ///< whose process it is; empty: flamed's own view
    std::string mounts;  ///< its mountinfo; empty where that can't be read
  };

  // With the mutex held.

  template <typename Answer>
  Result<Answer> ask(const Place& place, const std::function<Result<Answer>(OpenHelper&)>& question);
  [[nodiscard]] std::optional<Error> refusal(const Place& place) const;
  void leave_hung(const Place& place);
  void forget_ended();

  [[nodiscard]] Place place_of_mapping(const OpenRequest& request) const;
  [[nodiscard]] View view_of(std::int32_t pid) const;
  [[nodiscard]] static Place place_of_path(const View& view, std::string_view path);
  /// Empty when the process has ended.
  [[nodiscard]] std::string user_of(std::int32_t pid) const;
  /// Of the process, or flamed's own.
  [[nodiscard]] Result<std::string> mounts_of(std::int32_t pid) const;

  const Clock& clock_;
  const Options options_;
  Fd cancel_;  ///< readable once stop() was called
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;  ///< guards what follows but the atomics; held while the helper is waited for
  std::optional<OpenHelper> helper_;
  std::vector<OpenHelper> ended_;  ///< still to be reaped
  std::vector<Hung> hung_;
  std::vector<Slow> slow_;
  std::int64_t ended_cpu_ns_ = 0;
  std::atomic<std::size_t> hung_count_ = 0;
  std::atomic<std::uint64_t> timeouts_ = 0;
  std::atomic<std::int64_t> cpu_ns_ = 0;
};

}  // namespace flamed::symbolizer
