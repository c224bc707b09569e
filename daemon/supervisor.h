// SPDX-License-Identifier: Apache-2.0
//
// Supervisor: the main thread's loop. It waits for signals, checks memory, pressure, the ELF worker and whether the
// kernel still identifies clients, and feeds the watchdog only while flamed works.
#pragma once

#include <signal.h>

#include <cstdint>
#include <span>

#include "api/server/server.h"
#include "base/clock.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/config/config.h"
#include "daemon/flow/reader.h"
#include "daemon/machine/pressure_watch.h"
#include "daemon/sampler/sampler_figures.h"
#include "daemon/vitals.h"
#include "store/index/kept_index.h"
#include "store/ring/store.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {

/// Without the machine's accounts.
VitalSigns read_vital_signs(const Clock& clock, const SamplerFigures& sampling, const Reader& reader);

class Supervisor {
 public:
  /// All of them must outlive the supervisor.
  struct Parts {
    const Clock& clock;
    const SamplerFigures& sampling;
    const Reader& reader;
    symbolizer::WorkerModuleReader& module_reader;
    store::Store& store;
    store::KeptIndex& index;
    const api::Server& server;
    Vitals& vitals;
    BudgetKeeper& budget;
    PressureWatch& pressure;
  };
  /// `config` is in force, and was read from `arguments` and their file.
  Supervisor(const Parts& parts, Config config, std::span<const char* const> arguments);

  /// Until one of `signals`, which are blocked in all threads, ends it.
  void run(const sigset_t& signals);

 private:
  void reload();
  void judge();

  const Parts parts_;
  Config config_;
  const std::span<const char* const> arguments_;
  std::uint64_t taken_ = 0;  ///< at the last check
  bool is_idle_ = false;
};

}  // namespace flamed::daemon
