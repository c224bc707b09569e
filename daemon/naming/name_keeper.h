// SPDX-License-Identifier: Apache-2.0
//
// NameKeeper: when no process has a file mapped any more, names the addresses that stored stacks have in it, and closes
// it. An open file would keep its file system from being unmounted, and its blocks from being freed when it is deleted,
// as long as its samples are stored. The work of the `names` thread.
#pragma once

#include <functional>
#include <span>
#include <stop_token>

#include "base/clock.h"
#include "base/identity.h"
#include "store/ring/store.h"
#include "symbolizer/model/symbol.h"
#include "symbolizer/process/module_table.h"

namespace flamed::daemon {

class NameKeeper {
 public:
  /// All of them must outlive the keeper.
  struct Parts {
    symbolizer::ModuleTable& modules;
    symbolizer::Symbolizer& symbolizer;  ///< without a cache, where these names would replace others
    const store::Store& store;
    const Clock& clock;
    std::function<bool()> may_work;  ///< false: no CPU time for it now
    std::function<void()> closed;    ///< files were closed: their debug files can be closed as well
  };
  explicit NameKeeper(Parts parts) : parts_(std::move(parts)) {}

  /// Calls look() about once a second while there is something to do, until `stop` is requested.
  void run(const std::stop_token& stop);

  /// Names and closes files that have not been mapped for a few seconds.
  void look(const std::stop_token& stop = {});

  /// How long a file must have been unmapped: compilers, for example, are mapped again at once.
  static constexpr std::int64_t kDelayNs = 3 * kNsPerSecond;
  /// After this time it is closed without names, if there was no CPU time for them.
  static constexpr std::int64_t kLatestNs = 30 * kNsPerSecond;

 private:
  void keep(const symbolizer::ModuleTable::Abandoned& abandoned, std::span<const Frame> frames, MonotonicTime now);

  const Parts parts_;
};

}  // namespace flamed::daemon
