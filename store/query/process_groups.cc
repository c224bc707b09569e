// SPDX-License-Identifier: Apache-2.0
#include "store/query/process_groups.h"

#include <cstdlib>
#include <string_view>

#include "store/model/container_text.h"

namespace flamed::store {
namespace {

const std::string kNothing;

/// The executable, if the viewer may see it.
const std::string& executable_of(const SnapshotData& snapshot, const ProcessRecord& process) {
  const std::string* path = snapshot.hides_program_of(process) ? nullptr : process.executable.get();
  return path != nullptr ? *path : kNothing;
}

std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace

ProcessGroups::ProcessGroups(const SnapshotData& snapshot, Group by) : snapshot_(snapshot), by_(by) {
  if (by == Group::kTree) parents_.emplace(snapshot);
}

std::string ProcessGroups::label(std::uint32_t process) const {
  const Selector selected = selector(process);
  if (by_ == Group::kTree) {
    const ProcessRecord& top = snapshot_.processes[parents_->top_of(process)];
    return *top.comm + " (" + std::to_string(top.id.pid) + ")";
  }
  if (!selected.parameter.empty()) return by_ == Group::kUser ? "uid " + selected.value : selected.value;
  switch (by_) {
    case Group::kExecutable:
      return "[kernel threads and unknown]";
    case Group::kUnit:
      return "[no unit]";
    case Group::kContainer:
      return "[no container]";
    default:
      return "[user not known]";
  }
}

ProcessGroups::Selector ProcessGroups::selector(std::uint32_t process) const {
  const ProcessRecord& record = snapshot_.processes[process];
  const ProcessRecord::Place* place = record.place.get();
  const auto unless_empty = [](std::string_view parameter, std::string_view value) {
    return value.empty() ? Selector{} : Selector{std::string(parameter), std::string(value)};
  };
  switch (by_) {
    case Group::kProgram: {
      const std::string& path = executable_of(snapshot_, record);
      return path.empty() ? Selector{"comm", *record.comm} : Selector{"exe", file_name(path)};
    }
    case Group::kExecutable:
      return unless_empty("exe", executable_of(snapshot_, record));
    case Group::kUnit:
      return unless_empty("unit", place != nullptr ? place->unit : kNothing);
    case Group::kContainer:
      return unless_empty("container", split_container(place != nullptr ? place->container : kNothing).shown());
    case Group::kUser:
      return record.user() == kNoUser ? Selector{} : Selector{"uid", std::to_string(record.user())};
    case Group::kTree: {
      const ProcessId top = snapshot_.processes[parents_->top_of(process)].id;
      return {"tree", std::to_string(top.pid) + "@" + std::to_string(top.start_ticks)};
    }
    case Group::kNone:
    case Group::kProcess:
    case Group::kThread:
    case Group::kComm:
      break;
  }
  std::abort();
}

}  // namespace flamed::store
