// SPDX-License-Identifier: Apache-2.0
//
// Config: the settings of flamed-push, from /etc/flamed/push.json. Secrets are read from files of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace flamed::push {

inline constexpr const char* kDefaultConfigFile = "/etc/flamed/push.json";
inline constexpr const char* kDefaultSocket = "/run/flamed/flamed.sock";
inline constexpr std::size_t kMostReceivers = 8;

enum class Format : std::uint8_t { kPyroscope, kOtlp, kOtlpBefore110 };
/// As the daemon calls it.
std::string_view name_of(Format format);

/// The value of a header or a password: given, or the content of a file.
struct Secret {
  std::string text{};
  std::string file{};  ///< a path, or the name of a credential of the service manager; empty: `text` it is
};

struct Receiver {
  std::string name{};
  Format format = Format::kPyroscope;
  std::string origin{};  ///< "https://host:4040"
  std::string path{};    ///< "/push.v1.PusherService/Push"
  std::int64_t interval_ns = 15 * kNsPerSecond;
  std::int64_t max_age_ns = 60 * kNsPerMinute;
  bool sends_cpu = true;
  bool sends_wait = true;
  bool names_all = false;   ///< inlined calls and lines of every address are looked up for it
  std::string selection{};  ///< parameters of the API, encoded, each with an & before it
  std::vector<std::pair<std::string, Secret>> headers{};
  std::string user{};  ///< of basic authentication; empty: none
  Secret password{};
  Secret bearer_token{};
  std::string ca_file{};  ///< with PEM certificates; empty: those of the system
};

struct Config {
  std::string socket = kDefaultSocket;
  std::vector<Receiver> receivers{};
};

/// JSON with comments. An unknown key or a bad value is an error that says where and what is allowed.
Result<Config> parse_config(std::string_view text);

/// Replaces files by their first line. Names without a slash are in `credentials`, the folder of the service manager.
Status read_secrets(Config& config, const std::string& credentials);

}  // namespace flamed::push
