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
  /// Both arguments must outlive it.
  Daemon(const Config& config, std::span<const char* const> arguments);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Starts sampling and answering, and notifies the service manager. On failure it logs why and what to do, and
  /// returns the exit status.
  [[nodiscard]] std::optional<ExitStatus> start();

  /// Runs until one of `signals` arrives; then all taken samples are stored and counted. The signals are blocked in all
  /// threads.
  void run(const sigset_t& signals);

 private:
  class Parts;

  const Config& config_;
  const std::span<const char* const> arguments_;
  const SystemClock clock_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace flamed::daemon
