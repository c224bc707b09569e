// SPDX-License-Identifier: Apache-2.0
//
// NameKeeper: when nobody has a file mapped any more, has the addresses named that stored stacks have in it, and closes
// it. Otherwise a program that ran once would keep its file system from being unmounted, and its blocks from being
// freed when it is deleted, for as long as its samples are stored. The work of the `names` thread.
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
  /// All of it has to outlive the keeper.
  struct Parts {
    symbolizer::ModuleTable& modules;
    symbolizer::Symbolizer& symbolizer;  ///< without a cache, in which these names would take the place of others
    const store::Store& store;
    const Clock& clock;
    std::function<bool()> may_work;  ///< false: there is no CPU time for it now
    std::function<void()> closed;    ///< files were: what else is held open with them can go
  };
  explicit NameKeeper(Parts parts) : parts_(std::move(parts)) {}

  /// Does it about once a second while there is something to do, until `stop` is requested.
  void run(const std::stop_token& stop);

  /// Names and closes what nobody has had mapped for a few seconds.
  void look(const std::stop_token& stop = {});

  /// So long nobody has to have had a file mapped: compilers are mapped again at once.
  static constexpr std::int64_t kDelayNs = 3 * kNsPerSecond;
  /// After so long it is closed without names, if there was no time for them.
  static constexpr std::int64_t kLatestNs = 30 * kNsPerSecond;

 private:
  void keep(const symbolizer::ModuleTable::Abandoned& abandoned, std::span<const Frame> frames, MonotonicTime now);

  const Parts parts_;
};

}  // namespace flamed::daemon
