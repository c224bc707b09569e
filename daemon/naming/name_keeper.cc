// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/name_keeper.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/query/query.h"
#include "symbolizer/model/kept_names.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/reading_purpose.h"

namespace flamed::daemon {
namespace {

using symbolizer::KeptNames;
using symbolizer::Symbol;
using symbolizer::SymbolChain;
using symbolizer::SymbolChainPtr;

constexpr std::chrono::seconds kBetweenLooks{1};

constexpr const char* kClosed = "its file was closed when no process had it mapped any more";
constexpr const char* kNoTime =
    "its file was closed when no process had it mapped any more, and there was no CPU time to read its names before "
    "(cpu_budget)";

bool is_pending(const SymbolChain& chain) {
  return std::any_of(chain.begin(), chain.end(), [](const Symbol& symbol) { return symbol.pending; });
}

/// The names known now, which are final. Null: none.
SymbolChainPtr as_it_is(const SymbolChainPtr& chain) {
  if (!is_pending(*chain)) return chain;
  const Symbol& outermost = chain->front();
  if (chain->size() == 1 && !outermost.reason.empty() && outermost.kind != FrameKind::kUnnamed) return nullptr;
  SymbolChain settled = *chain;
  for (Symbol& symbol : settled) symbol.pending = false;
  return std::make_shared<const SymbolChain>(std::move(settled));
}

bool wait(const std::stop_token& stop, std::chrono::nanoseconds time) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

void NameKeeper::run(const std::stop_token& stop) {
  while (parts_.modules.await_abandoned(stop) && wait(stop, kBetweenLooks)) look(stop);
}

void NameKeeper::look(const std::stop_token& stop) {
  const MonotonicTime now = parts_.clock.monotonic();
  auto abandoned = parts_.modules.abandoned({now.ns - kDelayNs});
  if (abandoned.empty()) return;
  std::vector<ModuleId> modules;
  for (const auto& each : abandoned) modules.push_back(each.module->id);
  std::sort(modules.begin(), modules.end());
  const std::vector<Frame> frames = store::frames_of(parts_.store.snapshot(), modules);
  for (const auto& each : abandoned) {
    if (stop.stop_requested()) return;
    const ModuleId id = each.module->id;
    const auto first = std::lower_bound(frames.begin(), frames.end(), Frame{id, 0});
    const auto last = std::find_if(first, frames.end(), [&](const Frame& frame) { return frame.module != id; });
    keep(each, std::span(first, last), now);
  }
  abandoned.clear();  // the last references that hold the files open
  parts_.closed();
}

void NameKeeper::keep(const symbolizer::ModuleTable::Abandoned& abandoned, std::span<const Frame> frames,
                      MonotonicTime now) {
  const bool is_late = now.ns - abandoned.since.ns >= kLatestNs;
  std::vector<KeptNames::Named> names;
  std::vector<Frame> missing;
  for (const Frame& frame : frames) {
    const SymbolChainPtr known = abandoned.names == nullptr ? nullptr : abandoned.names->find(frame.offset);
    if (known == nullptr) {
      missing.push_back(frame);
    } else {
      names.push_back({frame.offset, known});
    }
  }
  std::string why = kClosed;
  if (!missing.empty() && !parts_.may_work()) {
    if (!is_late) return;
    why = kNoTime;
  } else if (!missing.empty()) {
    const symbolizer::ReadingFor background(symbolizer::ReadingPurpose::kBackground);
    const std::vector<SymbolChainPtr> chains = parts_.symbolizer.symbolise(missing);
    for (std::size_t i = 0; i < chains.size(); ++i) {
      if (is_pending(*chains[i]) && !is_late) return;
      if (SymbolChainPtr chain = as_it_is(chains[i])) names.push_back({missing[i].offset, std::move(chain)});
    }
  }
  static_cast<void>(
      parts_.modules.close(abandoned.module, std::make_shared<const KeptNames>(std::move(names)), std::move(why)));
}

}  // namespace flamed::daemon
