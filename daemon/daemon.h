// SPDX-License-Identifier: Apache-2.0
//
// Daemon: all parts of flamed, wired: sampler, ingest, store, symbolizer, API, and their threads.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "daemon/config/config.h"
#include "daemon/config/refusal.h"

namespace flamed::daemon {

class Daemon {
 public:
  /// Both must outlive it.
  Daemon(const Config& config, std::span<const char* const> arguments);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Samples and answers from here on, and tells the service manager. Where it can't, it says why and what to do, and
  /// returns what to exit with.
  [[nodiscard]] std::optional<ExitStatus> start();

  /// Watches over what start() began until one of `signals` ends it; then all that was taken is stored and counted. The
  /// signals are blocked in all threads.
  void run(const sigset_t& signals);

 private:
  class Parts;

  const Config& config_;
  const std::span<const char* const> arguments_;
  const SystemClock clock_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace flamed::daemon
