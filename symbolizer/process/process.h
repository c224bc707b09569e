// SPDX-License-Identifier: Apache-2.0
//
// Process: one process of the machine. An entry of the ProcessTracker.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/model/file_key.h"
#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/table_editions.h"

namespace flamed::symbolizer {

/// Members that every sample needs come first, close together: the CPU's caches don't have most processes.
struct Process {
  ProcessId id;                      ///< start_ticks is 0 until a sample or /proc gives it
  std::shared_ptr<MappingSet> maps;  ///< shared with the parent until either maps something; null: not known
  /// If /proc was read after the samples that are being located: the mappings by the events before that.
  std::shared_ptr<MappingSet> earlier_maps;
  MonotonicTime maps_as_of;  ///< with changes up to this time
  /// The end of that reading of /proc, which takes time: later samples use only `maps`.
  MonotonicTime maps_sure_from;
  MonotonicTime doubt_from = kNoDoubt;  ///< events were lost from here on, until /proc is read
  MonotonicTime looked_at;              ///< when /proc/PID was last read
  std::int64_t look_ns = 0;             ///< how long that reading took
  std::uint64_t cgroup_id = 0;          ///< set by the caller, from samples
  std::uint64_t exec_id = 0;  ///< likewise: of the program with these `maps`; incremented at each exec; 0: not known
  std::uint32_t account_round = 0;  ///< set by the caller: CpuAccounts::round() of the last sample
  std::uint32_t user = kNobodys;    ///< likewise: the owner of the last sample's thread
  bool start_is_estimate = false;   ///< id.start_ticks is computed from forked_at: exact to a tick
  bool stale = false;               ///< changes may have been missed: read /proc/PID when needed
  bool is_new_program = false;      ///< since its exec no sample was in code that it has mapped
  bool ended = false;
  bool sampled = false;       ///< set by the caller: ProcessTracker::changed() reports it from then on
  bool watched = false;       ///< see ProcessTracker::watch_mappings()
  bool described = false;     ///< set by the caller, once `detail` and `cgroup` were read; cleared by exec
  bool not_dumpable = false;  ///< set by the caller: its last sample with memory was not dumpable
  bool owner_told = false;    ///< set by the caller: its owner is known from samples; cleared by exec
  bool is_kernels = false;    ///< likewise: no sample of it had user space, as for kernel threads
  bool walked_late = false;   ///< likewise: a stack of it could be walked without tables; cleared by exec
  bool published = false;     ///< set by the caller: its changes are reported as if it were sampled
  bool changed = false;
  bool only_ended = false;  ///< nothing but its end has changed since ProcessTracker::changed() reported it
  bool remapped = false;
  bool may_have_threads = false;  ///< other than its first thread
  bool leader_ended = false;      ///< the first thread has ended, and others run on
  std::uint8_t failed_looks = 0;  ///< consecutive failures to read an existing /proc/PID/maps
  ModuleId anonymous;             ///< its memory without a file, once it was sampled
  ModuleId unmapped;              ///< its addresses outside of all mappings, once they were sampled
  TableEditions tables;           ///< set by the caller

  std::string comm;                      ///< of the main thread
  std::string executable;                ///< path in the process's mount namespace
  FileKey program;                       ///< its file, if its mapping was seen
  std::int32_t parent_pid = 0;           ///< the process that forked it, even if that one has ended since
  std::uint64_t parent_start_ticks = 0;  ///< 0: not known; see ProcessTracker::parent_of()
  MonotonicTime forked_at;               ///< 0 if the FORK was not seen
  MonotonicTime last_seen;               ///< of ended processes: the last event
  std::int64_t ask_jit_again_ns = 0;     ///< when to request its perf map and jitdump again
  ProcessDetail detail;                  ///< set by the caller, as is `cgroup`
  MonotonicTime asked_pid_at;            ///< set by the caller: when the command line of its pid was read
  std::shared_ptr<const Cgroup> cgroup;  ///< null: not known

  static constexpr MonotonicTime kNoDoubt{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace flamed::symbolizer
