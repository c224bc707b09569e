// SPDX-License-Identifier: Apache-2.0
//
// HotSpotNamer: reads which methods run at addresses of code in HotSpot JVMs, while they run. Ingest asks. A thread of
// its own has the ELF worker read the names from the process's memory.
#pragma once

#include <cstddef>
#include <mutex>
#include <stop_token>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/result.h"
#include "daemon/runtimes/open_jvms.h"
#include "symbolizer/model/hotspot_names.h"
#include "symbolizer/model/module_reader.h"

namespace flamed::daemon {

class HotSpotNamer {
 public:
  /// Both must outlive it.
  HotSpotNamer(OpenJvms& jvms, symbolizer::ModuleReader& reader) : jvms_(jvms), reader_(reader) {}

  struct Request {
    OpenJvms::Place jvm;
    symbolizer::HotSpotQuestion question{};
  };
  struct Answer {
    Request request;
    MonotonicTime began;  ///< nothing was read before
    Result<symbolizer::HotSpotNames> names;
  };

  // -- Ingest --------------------------------------------------------------------------------------------------------

  /// False: too many requests wait.
  [[nodiscard]] bool ask(Request request) { return requests_.try_push(std::move(request)); }
  /// Those since the last call.
  [[nodiscard]] std::vector<Answer> take_answers();

  // -- A thread of its own -------------------------------------------------------------------------------------------

  /// Serves requests until `stop` is requested.
  void run(const std::stop_token& stop);

 private:
  static constexpr std::size_t kMostWaiting = 256;

  Result<symbolizer::HotSpotNames> read(const Request& request);

  OpenJvms& jvms_;
  symbolizer::ModuleReader& reader_;
  BoundedQueue<Request> requests_{kMostWaiting};
  std::mutex mutex_;  ///< guards the answers
  std::vector<Answer> answers_;
};

}  // namespace flamed::daemon
