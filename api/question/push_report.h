// SPDX-License-Identifier: Apache-2.0
//
// The body of POST /push: what flamed-push says of its receivers. Names and numbers alone: no text of a receiver gets
// into the daemon. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/problem.h"
#include "base/clock.h"

namespace flamed::api {

inline constexpr std::size_t kMostPushReportBytes = 16384;
inline constexpr std::size_t kMostPushStreams = 16;
inline constexpr std::size_t kMostReceiverNameBytes = 64;

/// What became of the last request.
enum class PushOutcome : std::uint8_t {
  kNone,           ///< nothing was sent yet
  kAccepted,       ///< all of it
  kPartly,         ///< the receiver rejected some of it
  kRefused,        ///< with a status that another try won't change
  kUnavailable,    ///< no answer, or one that asks to come again: it is tried again
  kMisunderstood,  ///< the answer is none of such a receiver
};
inline constexpr std::array<std::string_view, 6> kPushOutcomes{"none",    "accepted",    "partly",
                                                               "refused", "unavailable", "misunderstood"};

/// Why samples were never sent, or not taken.
inline constexpr std::array<std::string_view, 4> kPushDrops{"refused", "too_old", "cut_minute", "misunderstood"};

/// Profiles of one measure to one receiver.
struct PushStream {
  std::string receiver{};  ///< letters, digits and -_. : at most kMostReceiverNameBytes
  std::string measure{};   ///< cpu or wait
  PushOutcome outcome = PushOutcome::kNone;
  int status = 0;                                          ///< of HTTP; 0: there was no answer
  WallTime until{};                                        ///< up to then everything was sent or dropped
  std::uint64_t requests = 0, bytes = 0, resent = 0;       ///< answered with 2xx; of these the bodies; sent once more
  std::uint64_t samples = 0;                               ///< answered with 2xx; of waiting time: units of 0.1 ms
  std::uint64_t rejected = 0;                              ///< profiles that the receiver did not take of these
  std::array<std::uint64_t, kPushDrops.size()> dropped{};  ///< samples
};

struct PushReport {
  std::int64_t interval_ms = 0;  ///< until the next one
  std::int64_t cpu_ns = 0;       ///< of the program since it began
  std::vector<PushStream> streams{};
};

/// {"interval_ms": 15000, "cpu_ns": 1, "receivers": [{"name": "a", "measure": "cpu", "outcome": "accepted", "status":
/// 200, "until_ms": 1769868310000, "requests": 1, "bytes": 1, "resent": 0, "samples": 1, "rejected": 0, "dropped": [0,
/// 0, 0, 0]}]}, `dropped` in the order of kPushDrops.
std::variant<PushReport, Problem> parse_push_report(std::string_view body);

}  // namespace flamed::api
