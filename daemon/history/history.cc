// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "store/ring/snapshot_data.h"

namespace flamed::daemon {
namespace {

archive::ModuleKind kind_of(symbolizer::ModuleKind kind) {
  switch (kind) {
    case symbolizer::ModuleKind::kKernel:
      return archive::ModuleKind::kKernel;
    case symbolizer::ModuleKind::kVdso:
      return archive::ModuleKind::kVdso;
    case symbolizer::ModuleKind::kFile:
      return archive::ModuleKind::kFile;
    case symbolizer::ModuleKind::kAnonymous:
      break;
  }
  return archive::ModuleKind::kAnonymous;
}

}  // namespace

History::History(Parts parts, std::string folder, archive::Archive::Options options)
    : parts_(std::move(parts)), folder_(std::move(folder)), archive_(folder_, std::move(options)) {}

void History::run(const std::stop_token& stop) {
  std::uint32_t newest = 0;
  while (const std::optional<std::uint32_t> sealed = parts_.store.await_sealed(newest, stop)) {
    newest = *sealed;
    write();
  }
  write();
}

void History::write() {
  const store::Snapshot snapshot = parts_.store.snapshot();
  for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
    if (sealed.slot->sequence <= written_) continue;
    const Status written = write(snapshot, *sealed.slot);
    note(written);
    if (!written) return;
  }
}

Status History::write(const store::Snapshot& snapshot, const store::Slot& slot) {
  const Result<bool> is_new_session = archive_.prepare(slot.bounds.wall_start());
  if (!is_new_session) return is_new_session.error();
  if (*is_new_session || !numbering_) numbering_.emplace([this](ModuleId id) { return describe(id); });
  archive::Numbering::Numbered numbered = numbering_->take(snapshot, slot);
  numbered.minute.cpus = parts_.cpus();
  numbered.minute.cpu_ns_accounted = parts_.machine_cpu_ns({slot.bounds.wall_start(), slot.bounds.wall_end()});
  const Result<std::vector<std::byte>> additions = encode(numbered.additions);
  const Result<std::vector<std::byte>> pairs = encode(numbered.minute);
  if (additions && pairs) {
    if (Status appended = archive_.append(numbered.minute, {*additions, *pairs}); !appended) return appended;
  }
  std::lock_guard lock(mutex_);
  state_.missed_minutes += slot.sequence - written_ - 1;
  written_ = slot.sequence;
  if (additions && pairs) return {};
  // Too large for a block; another attempt would fail as well.
  archive_.end_session();
  ++state_.missed_minutes;
  return additions ? pairs.error() : additions.error();
}

archive::Module History::describe(ModuleId id) const {
  const symbolizer::ModulePtr module = parts_.modules.find(id);
  if (module == nullptr) return {};
  return {kind_of(module->kind), module->path, module->owner};
}

void History::note(const Status& written) {
  std::lock_guard lock(mutex_);
  state_.archive = archive_.stats();
  if (written) {
    if (state_.problem) spdlog::info("history is written to {} again", folder_);
    state_.problem.reset();
    return;
  }
  const bool is_same = state_.problem && state_.problem->reason == written.error().message();
  if (!is_same) spdlog::warn("history is not written: {}", written.error().message());
  const WallTime since = state_.problem ? state_.problem->since : parts_.clock.wall();
  state_.problem = State::Problem{written.error().message(), since};
}

History::State History::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace flamed::daemon
