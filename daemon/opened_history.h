// SPDX-License-Identifier: Apache-2.0
//
// OpenedHistory: answers from one file of minutes, of this host or another one, instead of from samples: an excerpt, or
// a database of a history folder. Of flamed's parts there are the reader of the archive, over a snapshot without
// samples, and the API's server with the page; nothing is sampled, named or written, and there is no worker.
//
// The file is not believed: before more than its first bytes are read, the process gives up all rights, and root also
// its user.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "daemon/config/config.h"
#include "daemon/config/refusal.h"

namespace flamed::daemon {

class OpenedHistory {
 public:
  /// `config` must outlive it: of its settings, `listen` counts.
  OpenedHistory(const Config& config, std::string path);
  ~OpenedHistory();
  OpenedHistory(const OpenedHistory&) = delete;
  OpenedHistory& operator=(const OpenedHistory&) = delete;

  /// Begins to answer. Only for a process with one thread. On failure it logs why and what to do, and returns the exit
  /// status.
  [[nodiscard]] std::optional<ExitStatus> start();

  /// Runs until SIGTERM or SIGINT, which are among `signals`, blocked in all threads.
  static void run(const sigset_t& signals);

 private:
  class Parts;

  const Config& config_;
  const std::string path_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace flamed::daemon
