// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_details.h"

#include <sys/stat.h>

#include <array>
#include <span>
#include <utility>

#include "base/file.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/process/cgroup_path.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/process/process_status.h"

namespace flamed::symbolizer {
namespace {

/// Larger than any of the files: status is about 1.5 KB, a path in cgroup is at most PATH_MAX.
using Buffer = std::array<char, 8192>;

}  // namespace

bool ProcessDetails::is_still(ProcessId id) const {
  Buffer buffer;
  const auto stat = parse_stat(read_once(proc_path(proc_, id.pid, "stat"), buffer));
  return stat && stat->start_ticks == id.start_ticks;
}

std::optional<ProcessDetail> ProcessDetails::read(ProcessId id) const {
  Buffer buffer;
  ProcessDetail detail;
  const auto status = parse_process_status(read_once(proc_path(proc_, id.pid, "status"), buffer));
  if (!status) return std::nullopt;
  detail.uid = status->uid.effective;
  detail.command_line = read_command_line(id.pid);
  if (!is_still(id)) return std::nullopt;
  return detail;
}

std::string ProcessDetails::read_command_line(std::int32_t pid) const {
  if (command_lines_ == CommandLines::kOff) return {};
  Buffer buffer;
  return format_command_line(
      read_once(proc_path(proc_, pid, "cmdline"), std::span(buffer).first(kCommandLineLimitBytes)), command_lines_);
}

std::shared_ptr<const Cgroup> ProcessDetails::cgroup(std::uint64_t cgroup_id, ProcessId id) {
  if (const auto known = by_id_.find(cgroup_id); known != by_id_.end()) return known->second;
  Buffer buffer;
  const CgroupLine line = parse_proc_cgroup(read_once(proc_path(proc_, id.pid, "cgroup"), buffer));
  if (line.path.empty()) return nullptr;
  const std::string path = path_in_hierarchy(line.unified ? cgroups_.own : "", line.path);
  // The id of a cgroup is the inode number of its directory. It differs if the pid was reused or the process was moved.
  struct stat status {};
  const bool is_that_one = line.unified && cgroup_id != 0 && ::stat((cgroups_.mount + path).c_str(), &status) == 0 &&
                           status.st_ino == cgroup_id;
  if (!is_that_one && !is_still(id)) return nullptr;
  CgroupNames names = parse_cgroup_path(path);
  auto cgroup = std::make_shared<Cgroup>();
  cgroup->path = clean_name(path);
  cgroup->unit = clean_name(names.unit);
  cgroup->container = clean_name(names.container);
  // An unused hierarchy has all processes in its root; their paths are those in the hierarchies of version 1.
  if (is_that_one && path != "/") {
    if (by_id_.size() >= kMostCgroups) by_id_.clear();
    by_id_.emplace(cgroup_id, cgroup);
  }
  return cgroup;
}

}  // namespace flamed::symbolizer
