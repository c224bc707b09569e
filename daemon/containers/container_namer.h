// SPDX-License-Identifier: Apache-2.0
//
// ContainerNamer: finds what containers are called. Ingest asks by id. A thread of its own has the open helper find
// what their runtimes have written about them, and the ELF worker read it. Where that has no name, the open helper asks
// the engines that the configuration names, and the worker reads their answers.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/result.h"
#include "symbolizer/model/container_engine.h"
#include "symbolizer/model/container_file.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/opener/guarded_opener.h"

namespace flamed::daemon {

/// As of store::ContainerText. Empty without names.
std::string container_name_of(const symbolizer::ContainerNames& names);

class ContainerNamer {
 public:
  /// All but `engines` must outlive it.
  ContainerNamer(symbolizer::GuardedOpener& opener, symbolizer::ModuleReader& reader, const Clock& clock,
                 const std::vector<symbolizer::ContainerEngine>& engines);

  // -- Ingest --------------------------------------------------------------------------------------------------------

  /// `container` with its name, if that is known (store/model/container_text.h). Asks for it, once. What is no id is a
  /// name already.
  [[nodiscard]] std::string text_of(const std::string& container);
  /// The ids of those that got a name since the last call.
  [[nodiscard]] std::unordered_set<std::string> take_named();

  // -- A thread of its own -------------------------------------------------------------------------------------------

  /// Serves requests until `stop` is requested.
  void run(const std::stop_token& stop);

 private:
  static constexpr std::size_t kMostWaiting = 1024;
  /// When full, containers are asked for again.
  static constexpr std::size_t kMostKnown = 16'384;

  struct Answer {
    std::string id;
    std::string name;
  };

  struct Request {
    std::string id;
    std::size_t tries = 0;
    MonotonicTime not_before;
  };

  struct Engine {
    symbolizer::ContainerEngine at;
    MonotonicTime not_before{};  ///< it is not asked until then
    bool is_failing = false;     ///< the log has it
  };

  struct Found {
    std::string name{};          ///< empty: not now
    bool is_incomplete = false;  ///< an engine could not be asked
  };
  Found find(const std::string& id);
  void ask_engines(const std::string& id, Found& found);
  Result<std::string> ask(Engine& engine, const std::string& id);

  symbolizer::GuardedOpener& opener_;
  symbolizer::ModuleReader& reader_;
  const Clock& clock_;
  std::vector<Engine> engines_;                         ///< of the thread
  std::unordered_map<std::string, std::string> known_;  ///< ingest's: names by id, empty as long as it is not known
  BoundedQueue<Request> requests_{kMostWaiting};
  std::mutex mutex_;  ///< guards the answers
  std::vector<Answer> answers_;
};

}  // namespace flamed::daemon
