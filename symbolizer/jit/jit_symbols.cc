// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/jit_symbols.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

std::string shown(const JitFile& file) { return clean_name(file.path, 255); }

}  // namespace

JitSymbols::JitSymbols(ModuleReader& reader, const Clock& clock) : JitSymbols(reader, clock, Options()) {}

JitSymbols::JitSymbols(ModuleReader& reader, const Clock& clock, Options options)
    : reader_(reader), clock_(clock), options_(options) {}

std::optional<SymbolTable::Found> JitSymbols::View::find(std::uint64_t address) const {
  for (const TablePtr& table : tables) {
    if (std::optional<SymbolTable::Found> found = table->find(address)) return found;
  }
  return std::nullopt;
}

JitSymbols::View JitSymbols::view(const JitFiles& files) {
  View view;
  std::vector<std::pair<std::int64_t, TablePtr>> tables;  // by the time of the last change
  std::string names;
  for (const JitFilePtr& file : files.files) {
    const SlotPtr slot = slot_of(file);
    std::lock_guard lock(slot->mutex);
    look(*file, slot);
    if (slot->table != nullptr) {
      tables.emplace_back(slot->seen.modified_ns, slot->table);
      names += (names.empty() ? "" : " and ") + shown(*file);
    } else if (view.why_none.empty()) {
      view.why_none = "cannot use " + shown(*file) + ": " + slot->problem;
    }
  }
  std::stable_sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [modified, table] : tables) view.tables.push_back(std::move(table));
  if (files.files.empty()) view.why_none = files.why_none;
  if (view.why_none.empty()) view.why_none = "no entry of " + names + " covers this address";
  return view;
}

JitSymbols::SlotPtr JitSymbols::slot_of(const JitFilePtr& file) {
  std::lock_guard lock(mutex_);
  SlotPtr& slot = slots_[file.get()];
  // A new JitFile may have the memory address of a freed one.
  if (slot == nullptr || slot->file.lock() != file) {
    if (slot != nullptr) stats_.table_bytes -= slot->bytes;
    slot = std::make_shared<Slot>();
    slot->file = file;
  }
  slot->last_used = ++uses_;
  return slot;
}

void JitSymbols::look(const JitFile& file, const SlotPtr& slot) {
  const std::int64_t now = clock_.monotonic().ns;
  if (slot->looked_at_ns && now - *slot->looked_at_ns < options_.look_again_after_ns) return;
  slot->looked_at_ns = now;
  // The kernel's cached attributes: the file system itself may not answer.
  struct statx status {};
  if (::statx(file.file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &status) == 0) {
    slot->seen = {static_cast<std::int64_t>(status.stx_size),
                  status.stx_mtime.tv_sec * kNsPerSecond + status.stx_mtime.tv_nsec};
  }
  // The state before reading is recorded, so that anything written meanwhile counts as a change.
  const bool again = slot->seen != slot->read || !slot->problem.empty();
  if (again && now >= slot->read_again_at_ns) read(file, slot);
}

void JitSymbols::read(const JitFile& file, const SlotPtr& slot) {
  const std::int64_t started = clock_.monotonic().ns;
  const auto read_file = [&]() -> Result<SymbolTable> {
    try {
      return reader_.read_jit_symbols(file.file.get(), file.format);
    } catch (const std::exception& e) {
      return Error(e.what());
    }
  };
  Result<SymbolTable> table = read_file();
  const std::int64_t ended = clock_.monotonic().ns;
  slot->read = slot->seen;
  slot->read_again_at_ns = ended + (ended - started) * options_.rest_after_reading;
  // Known names stay if the file can't be read any more.
  if (table) {
    slot->table = std::make_shared<const SymbolTable>(std::move(table).value());
    slot->problem.clear();
  } else {
    slot->problem = table.error().message();
    slot->read_again_at_ns = std::max(slot->read_again_at_ns, ended + options_.retry_failed_after_ns);
  }
  settle(slot, sizeof(Slot) + (slot->table != nullptr ? slot->table->bytes() : 0), !slot->problem.empty(),
         ended - started);
}

void JitSymbols::settle(const SlotPtr& slot, std::size_t bytes, bool failed, std::int64_t took_ns) {
  std::lock_guard lock(mutex_);
  ++stats_.loads;
  if (failed) ++stats_.failed_loads;
  stats_.load_ns += took_ns;
  const bool kept = std::any_of(slots_.begin(), slots_.end(), [&](const auto& entry) { return entry.second == slot; });
  if (!kept) return;
  stats_.table_bytes = stats_.table_bytes - slot->bytes + bytes;
  slot->bytes = bytes;
  evict_locked();
}

void JitSymbols::evict_locked() {
  for (auto it = slots_.begin(); it != slots_.end();) {
    if (it->second->file.expired()) {
      stats_.table_bytes -= it->second->bytes;
      it = slots_.erase(it);
    } else {
      ++it;
    }
  }
  while (stats_.table_bytes > options_.table_budget_bytes) {
    auto oldest = slots_.end();
    for (auto it = slots_.begin(); it != slots_.end(); ++it) {
      if (it->second->bytes == 0) continue;  // being read
      if (oldest == slots_.end() || it->second->last_used < oldest->second->last_used) oldest = it;
    }
    if (oldest == slots_.end()) return;
    stats_.table_bytes -= oldest->second->bytes;
    slots_.erase(oldest);
    ++stats_.evictions;
  }
}

JitSymbols::Stats JitSymbols::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.tables = slots_.size();
  return stats;
}

}  // namespace flamed::symbolizer
