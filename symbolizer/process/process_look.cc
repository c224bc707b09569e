// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_look.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "symbolizer/process/executable_lines.h"
#include "symbolizer/process/mapping_event.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatLimitBytes = 4096;

std::string read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size <= 0) return {};
  return std::string(without_deleted_mark({target.data(), static_cast<std::size_t>(size)}));
}

}  // namespace

ProcessLook look_at_process(const std::string& proc, std::int32_t pid, const Clock& clock, ModuleTable& modules) {
  ProcessLook look;
  // Later events are still to come. Changes that this reading already has are not changed by applying them again.
  look.as_of = clock.monotonic();
  Result<std::string> maps = read_executable_lines(proc_path(proc, pid, "maps"));
  std::optional<std::int32_t> thread;
  if (!maps || maps->empty()) thread = other_thread(proc, pid);
  // Once the first thread has ended, only the others' files show the shared mappings.
  const std::string shown_by = thread ? "task/" + std::to_string(*thread) + "/" : "";
  if (thread) maps = read_executable_lines(proc_path(proc, pid, shown_by + "maps"));
  look.executable = read_link(proc_path(proc, pid, shown_by + "exe"));
  if (maps) {
    look.maps = std::make_shared<MappingSet>();
    for (const MapsLine& line : parse_executable_maps(*maps)) {
      const MappingEvent mapped{pid, line.start, line.end - line.start, line.file_offset, line.file, line.path};
      look.maps->insert(mapping_of(mapped, modules).mapping);
    }
  }
  look.done = clock.monotonic();
  // Last, because it verifies the others: if the pid was reused, the start time differs.
  std::array<char, kStatLimitBytes> buffer;
  const std::optional<StatLine> stat = parse_stat(read_once(proc_path(proc, pid, "stat"), buffer));
  if (!stat) return look;
  // A zombie's EXIT was reported already, and its memory is gone.
  look.leader_ended = stat->state == 'Z' || stat->state == 'X';
  look.alive = !look.leader_ended || thread;
  look.id = {pid, stat->start_ticks};
  look.parent_pid = stat->parent_pid;
  look.comm = std::string(stat->comm);
  return look;
}

}  // namespace flamed::symbolizer
