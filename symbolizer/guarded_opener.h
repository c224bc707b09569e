// SPDX-License-Identifier: Apache-2.0
//
// GuardedOpener: opens what other programs' users have a say in where it lies, without ever being held up by a file
// system that does not answer: a helper process does it all, and is left behind when it takes too long. Until it comes
// back, and a while longer, what would most likely hold up the next one is refused at once: files of the same file
// system where the hang is one's that can be told beforehand, and otherwise, where links or layers led there, what that
// user's processes have to open.
//
// Any thread. Who asks waits while another one is answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/jit_file.h"
#include "symbolizer/module_table.h"
#include "symbolizer/open_helper.h"
#include "symbolizer/root_files.h"

namespace flamed::symbolizer {

class GuardedOpener final : public RootFiles {
 public:
  struct Options {
    std::string program = "/proc/self/exe";  ///< see OpenHelper::start()
    std::string proc = "/proc";
    std::int64_t limit_ns = 2 * kNsPerSecond;   ///< how long to wait for an answer
    std::int64_t quiet_ns = 30 * kNsPerSecond;  ///< how long to refuse after the file system has answered again
  };
  GuardedOpener() : GuardedOpener(Options()) {}
  explicit GuardedOpener(Options options) : options_(std::move(options)) {}
  ~GuardedOpener() override;
  GuardedOpener(const GuardedOpener&) = delete;
  GuardedOpener& operator=(const GuardedOpener&) = delete;

  // An error with code ETIMEDOUT: the file system does not answer, or did not a moment ago. EAGAIN: the helper was
  // lost; the next question gets another one.

  /// What open_module() says. The file can be read from: its beginning was.
  Result<Fd> open_module(const OpenRequest& request);
  /// What find_jit_files() says.
  Result<JitFiles> find_jit_files(const ProcessId& owner);
  /// What does not answer isn't there.
  std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths) override;

  struct Stats {
    std::size_t hung = 0;        ///< places that do not answer now
    std::uint64_t timeouts = 0;  ///< since start
    std::int64_t cpu_ns = 0;     ///< of all helpers since start
  };
  [[nodiscard]] Stats stats() const { return {hung_count_, timeouts_, cpu_ns_}; }

 private:
  /// What is refused together: "device 0:45", "user 1000", "mappings of user 1000", "host".
  using Place = std::string;

  /// A helper that waits for a file system, or did until a moment ago.
  struct Hung {
    OpenHelper helper;
    Place place;
    std::optional<MonotonicTime> quiet_until;  ///< given: it has come back
  };

  // With the mutex held.

  /// `place` is asked for only where something hangs.
  template <typename Answer>
  Result<Answer> ask(const std::function<Place()>& place, const std::function<Result<Answer>(OpenHelper&)>& question);
  void forget_ended();
  [[nodiscard]] bool is_hung(const Place& place) const;

  [[nodiscard]] Place place_of(const OpenRequest& request) const;
  [[nodiscard]] Place user_of(std::int32_t pid) const;
  /// One for each path.
  [[nodiscard]] std::vector<Place> places_of(std::int32_t pid, std::span<const std::string> paths) const;

  const Options options_;
  SystemClock clock_;
  std::mutex mutex_;  ///< guards what follows but the atomics; held while the helper is waited for
  std::optional<OpenHelper> helper_;
  std::vector<OpenHelper> ended_;  ///< still to be reaped
  std::vector<Hung> hung_;
  std::int64_t ended_cpu_ns_ = 0;
  std::atomic<std::size_t> hung_count_ = 0;
  std::atomic<std::uint64_t> timeouts_ = 0;
  std::atomic<std::int64_t> cpu_ns_ = 0;
};

}  // namespace flamed::symbolizer
