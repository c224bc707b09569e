// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/known_programs.h"

namespace flamed::daemon {
namespace {

flamed_program_file file_of(const symbolizer::FileKey& file) {
  const std::uint64_t device = std::uint64_t{file.device_major} << FLAMED_DEVICE_MINOR_BITS | file.device_minor;
  return {file.inode, device};
}

}  // namespace

void KnownPrograms::has_runtime(const symbolizer::FileKey& file, const flamed_known_program& runtime) {
  const std::lock_guard lock(mutex_);
  if (table_.put_program(file_of(file), runtime)) known_[file] = Is::kRuntime;
}

void KnownPrograms::has_ended(const symbolizer::FileKey& file, bool needs_notice) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(file);
  if (found != known_.end() && (found->second != Is::kWalkedLate || !needs_notice)) return;
  if (found == known_.end() && known_.size() >= kMost) forget_others();
  if (found != known_.end()) table_.remove_program(file_of(file));
  if (!needs_notice && !table_.put_program(file_of(file), {FLAMED_NO_RUNTIME, 0})) return;
  known_[file] = needs_notice ? Is::kNoticed : Is::kWalkedLate;
}

/// But for runtimes, which are met only once.
void KnownPrograms::forget_others() {
  std::erase_if(known_, [this](const auto& each) {
    if (each.second == Is::kRuntime) return false;
    table_.remove_program(file_of(each.first));
    return true;
  });
}

}  // namespace flamed::daemon
