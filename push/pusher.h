// SPDX-License-Identifier: Apache-2.0
//
// Pusher: sends everything to one receiver, one request after the other: asks what is complete, asks the daemon for it,
// sends it until the receiver takes it or never will, and keeps how far it got.
//
// run() on one thread, figures() on any. What it is given must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "push/config.h"
#include "push/http_client.h"
#include "push/progress.h"
#include "push/verdict.h"

namespace flamed::push {

/// Why a receiver does not have samples.
enum class Drop : std::uint8_t { kRefused, kTooOld, kCutMinute, kMisunderstood };
inline constexpr std::size_t kDrops = 4;

/// Of one measure. Counters begin with the program.
struct Figures {
  std::string_view measure{};
  std::string_view outcome =
      "none";  ///< of the last request: none, accepted, partly, refused, unavailable, misunderstood
  int status = 0;
  std::int64_t until_ms = 0;
  std::uint64_t requests = 0, bytes = 0, resent = 0, samples = 0, rejected = 0;
  std::array<std::uint64_t, kDrops> dropped{};  ///< samples
};

class Pusher {
 public:
  /// What it does to the world; tests have others.
  struct Outside {
    const Clock& clock;
    /// False: the program is to end.
    std::function<bool(std::int64_t ns)> wait;
    std::function<LocalAnswer(const std::string& target)> ask;
    std::function<Answer(const Headers& headers, const std::string& body)> send;
    /// `name` is that of a mark.
    std::function<std::optional<Mark>(const std::string& name)> load;
    std::function<void(const std::string& name, const Mark& mark)> save;
    std::function<double()> chance;  ///< from 0 to 1
    std::function<void(const std::string& line)> log;
  };
  Pusher(const Receiver& receiver, Outside outside);

  /// Until wait() says so.
  void run();

  [[nodiscard]] const Receiver& receiver() const { return receiver_; }
  [[nodiscard]] std::vector<Figures> figures() const;

 private:
  struct Stream {
    std::string_view measure;
    std::int64_t pause_ms;  ///< between its steps, at least
    Progress progress;
    std::int64_t not_before_ms = 0;
  };
  /// What came from the daemon.
  struct Fetched {
    std::uint64_t samples = 0;
    Stretch used{};
    std::string body{};
  };

  [[nodiscard]] std::int64_t now_ms() const { return outside_.clock.wall().ns / kNsPerMs; }
  [[nodiscard]] std::string mark_name(const Stream& stream) const;
  /// False: the program is to end.
  bool advance(Stream& stream);
  bool send(Stream& stream, const Progress::Step& step, const Fetched& fetched);
  std::optional<Fetched> fetch(const Stream& stream, const Progress::Step& step);
  std::optional<std::uint64_t> count(const Stream& stream, const Progress::Step& step);
  void finish(Stream& stream);
  /// Tells a change once.
  void tell(const std::string& state, const std::string& detail);
  /// An excerpt of an answer, for people, unless it has one of the receiver's secrets.
  [[nodiscard]] std::string excerpt_of(const Answer& answer) const;
  template <typename F>
  void change(const Stream& stream, F&& apply);

  const Receiver& receiver_;
  const Outside outside_;
  const Headers headers_;
  const std::vector<std::string> secrets_;  ///< as they may come back in an answer
  std::vector<Stream> streams_;
  Pauses pauses_;
  std::string told_;
  mutable std::mutex mutex_;
  std::vector<Figures> figures_;  ///< of each of streams_; guarded by mutex_
};

}  // namespace flamed::push
