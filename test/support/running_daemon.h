// SPDX-License-Identifier: Apache-2.0
//
// RunningDaemon: the real flamed on a loopback port of its own, queried with the client of cpp-httplib.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/child_process.h"

namespace flamed::test {

struct HttpQuestion {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;
  std::string body;
};

struct HttpAnswer {
  int status = 0;
  std::string content_type;
  std::string body;
};

class RunningDaemon {
 public:
  /// Starts the binary named by FLAMED_BINARY and waits until it is ready. Throws with its last words if it ends.
  /// Without a configuration file among the arguments there is no CPU budget. `launcher` is a command that runs the
  /// command after it, such as setpriv(1).
  explicit RunningDaemon(const std::vector<std::string>& arguments = {}, const std::vector<std::string>& launcher = {});

  /// Status 0: no answer within 20 s.
  [[nodiscard]] HttpAnswer get(const std::string& target) const;
  [[nodiscard]] HttpAnswer send(const HttpQuestion& question) const;
  [[nodiscard]] nlohmann::json get_json(const std::string& target) const;
  /// Folded stacks: stack → count. Throws with the answer if it is not one of status 200.
  [[nodiscard]] std::map<std::string, std::uint64_t> folded(const std::string& target) const;
  /// Metrics of one moment, each summed over its labels.
  [[nodiscard]] std::map<std::string, double> metrics() const;

  /// Ends the daemon as systemd does. Returns its exit code and last line, which accounts for every sample taken.
  struct End {
    int exit_code = -1;
    std::chrono::milliseconds took{};
    std::uint64_t taken = 0, whole = 0, truncated = 0, lost = 0;  ///< guessed ones count as truncated
    std::string losses;  ///< " (ring_full 12)": by reason; empty if nothing was lost
  };
  End end();

  /// Calls `done` again and again, with a pause in between, until it returns true or the time is over. Returns its last
  /// result.
  [[nodiscard]] static bool eventually(std::chrono::milliseconds limit, const std::function<bool()>& done,
                                       std::chrono::milliseconds pause = std::chrono::milliseconds(50));

  [[nodiscard]] ChildProcess& process() { return process_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_;
  ChildProcess process_;
};

/// How much longer than usual things may take here: emulated machines (FLAMED_EMULATED) are slower by ten to twenty
/// times.
int patience();

/// A TCP port on loopback without a listener.
std::uint16_t free_port();

}  // namespace flamed::test
