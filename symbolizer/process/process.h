// SPDX-License-Identifier: Apache-2.0
//
// Process: what is known of one process of the machine. An entry of the ProcessTracker.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>

#include "base/clock.h"
#include "base/identity.h"
#include "symbolizer/process/mapping_set.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/table_editions.h"

namespace flamed::symbolizer {

/// What every sample asks for stands first, close together: of many processes nothing is in the CPU's caches.
struct Process {
  ProcessId id;                      ///< start_ticks is 0 until a sample or /proc has told it
  std::shared_ptr<MappingSet> maps;  ///< shared with the parent until either maps something; null: not known
  /// Where the look at /proc came after the samples that are being placed: what events told up to those.
  std::shared_ptr<MappingSet> earlier_maps;
  MonotonicTime maps_as_of;  ///< changes up to this time are known
  /// Samples from here on are placed by `maps` alone: the end of that look, which is no moment.
  MonotonicTime maps_sure_from;
  MonotonicTime doubt_from = kNoDoubt;  ///< events were lost from here on, until /proc was looked at
  MonotonicTime looked_at;              ///< when /proc/PID was last read
  std::int64_t look_ns = 0;             ///< how long that took
  std::uint64_t cgroup_id = 0;          ///< set by the caller, who learns it from samples
  std::uint64_t exec_id =
      0;  ///< likewise: of the program that `maps` are those of; grows by 1 with each exec; 0: not known
  std::uint32_t account_round = 0;  ///< set by the caller: CpuAccounts::round() of the last sample
  std::uint32_t user = kNobodys;    ///< likewise: whose the thread of the last sample was
  bool start_is_estimate = false;   ///< id.start_ticks is that of forked_at: right to a tick
  bool stale = false;               ///< changes may have been missed: read /proc/PID when next needed
  bool ended = false;
  bool sampled = false;       ///< set by the caller: its changes are told by take_changed() from then on
  bool watched = false;       ///< see ProcessTracker::watch_mappings()
  bool described = false;     ///< set by the caller, once `detail` and `cgroup` were read; exec takes it back
  bool not_dumpable = false;  ///< set by the caller: its user may not look into it, as its last sample with memory said
  bool owner_told = false;    ///< set by the caller: samples say whose it is; exec takes it back
  bool is_kernels = false;    ///< likewise: every sample of it was without user space, as those of kernel threads
  bool published = false;     ///< set by the caller: its changes are told as if it were sampled
  bool changed = false;
  bool only_ended = false;  ///< besides that it has ended, what take_changed() told before holds
  bool remapped = false;
  bool new_jit_code = false;      ///< a block was not reported yet
  bool may_have_threads = false;  ///< besides the one that it began with
  bool leader_ended = false;      ///< that one has ended, and others go on
  std::uint8_t failed_looks = 0;  ///< in a row, at /proc/PID/maps, which was there and could not be read
  ModuleId anonymous;             ///< its memory without a file, once a sample was there
  ModuleId unmapped;              ///< its addresses outside of all mappings, likewise
  TableEditions tables;           ///< set by the caller

  std::string comm;                                ///< of the main thread
  std::string executable;                          ///< path in the process's mount namespace
  std::int32_t parent_pid = 0;                     ///< who forked it, also when that one has ended since
  std::uint64_t parent_start_ticks = 0;            ///< 0: not known; see ProcessTracker::parent_of()
  MonotonicTime forked_at;                         ///< 0 where the FORK was not seen
  MonotonicTime last_seen;                         ///< of ended processes: the last event
  std::int64_t ask_jit_again_ns = 0;               ///< when to ask again for what names its JIT code
  std::unordered_set<std::uint64_t> jit_blocks{};  ///< where samples were in memory without a file; address >> 8
  ProcessDetail detail;                            ///< set by the caller, as is `cgroup`
  MonotonicTime asked_pid_at;                      ///< set by the caller: when its pid was asked for the command line
  std::shared_ptr<const Cgroup> cgroup;            ///< null: not known

  static constexpr MonotonicTime kNoDoubt{std::numeric_limits<std::int64_t>::max()};
};

}  // namespace flamed::symbolizer
