// SPDX-License-Identifier: Apache-2.0
//
// What a receiver's answer means, and when to try again. Pure; any thread. The bytes of an answer are a stranger's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "push/config.h"

namespace flamed::push {

struct Answer {
  int status = 0;  ///< 0: there was none, or it broke off before it said what became of the request
  std::string content_type{};
  std::string retry_after{};
  std::string body{};   ///< as far as it was read
  std::string fault{};  ///< why there was none, a phrase
};

struct Verdict {
  enum class Kind : std::uint8_t {
    kAccepted,
    kPartly,         ///< `rejected` profiles were not taken
    kRefused,        ///< another try won't change it
    kAgain,          ///< after `pause_ns`, at least
    kMisunderstood,  ///< 2xx, but not from such a receiver. It may have kept it: it is not sent again
  };
  Kind kind = Kind::kAccepted;
  std::uint64_t rejected = 0;
  std::optional<std::int64_t> pause_ns{};  ///< as the receiver asks
};

Verdict judge(Format format, const Answer& answer, WallTime now);

/// Pauses between tries: each about twice as long as the one before, from one second to a minute, by chance a quarter
/// more or less, so that hosts do not come all at once.
class Pauses {
 public:
  /// `chance` is from 0 to 1. Never shorter than `asked_ns`.
  std::int64_t next_ns(double chance, std::optional<std::int64_t> asked_ns = {});
  void reset() { last_ns_ = 0; }

 private:
  std::int64_t last_ns_ = 0;
};

}  // namespace flamed::push
