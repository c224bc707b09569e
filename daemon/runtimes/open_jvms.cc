// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/open_jvms.h"

#include <cerrno>
#include <optional>
#include <utility>

namespace flamed::daemon {

Result<std::shared_ptr<const OpenJvms::Jvm>> OpenJvms::open(const Place& place) {
  const ProcessMemories::Owner& owner = place.owner;
  if (memories_.is_stuck(owner.user)) return ProcessMemories::stuck_error();
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(owner.process);
    if (found != open_.end() && found->second.exec_id == owner.exec_id) return found->second.jvm;
  }
  Result<std::shared_ptr<const Fd>> memory = memories_.open(owner);
  if (!memory) return std::move(memory).error();
  const symbolizer::ModulePtr library = modules_.find(place.library);
  if (library == nullptr || !library->file) return Error("its library is not open yet", EAGAIN);
  Result<std::optional<symbolizer::HotSpotModule>> module =
      reader_.find_hotspot(library->file.get(), {(*memory)->get(), owner.user}, place.mapping);
  if (!module) {
    const int code = module.error().code();
    return std::move(module).error().with_code(code == EAGAIN || code == EBUSY ? code : ENOTSUP);
  }
  if (!*module) return Error("it is not HotSpot", ENOTSUP);
  auto jvm = std::make_shared<const Jvm>(
      Jvm{*memory, (*module)->layout, (*module)->base_of(place.mapping.start, place.mapping.file_offset)});
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = open_.insert_or_assign(owner.process, Open{owner.exec_id, jvm});
  if (is_new) opened_.push_back(owner.process);
  if (opened_.size() > kMostOpen) {
    open_.erase(opened_.front());
    opened_.pop_front();
  }
  return jvm;
}

}  // namespace flamed::daemon
