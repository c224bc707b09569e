// SPDX-License-Identifier: Apache-2.0
#include "store/process_table.h"

#include <algorithm>
#include <vector>

namespace flamed::store {
namespace {

// Longer than any path that the kernel hands out (PATH_MAX).
constexpr std::size_t kLongestString = 4096;

std::uint64_t hash_of(ProcessId id) {
  return mix(static_cast<std::uint64_t>(id.pid) * 0x9e3779b97f4a7c15ULL + id.start_ticks);
}

std::optional<WallTime> time_or_none(std::int64_t ns) {
  if (ns == ProcessRecord::kNoTime) return std::nullopt;
  return WallTime{ns};
}

std::int64_t ns_or_none(std::optional<WallTime> time) { return time ? time->ns : ProcessRecord::kNoTime; }

}  // namespace

ProcessInfo ProcessRecord::info() const {
  return {
      id, *comm, executable ? *executable : std::string(), cgroup_id, time_or_none(started_ns), time_or_none(ended_ns)};
}

ProcessTable::~ProcessTable() {
  for (const auto& [text, shared] : strings_) budget_.give_back(bytes_of(text));
}

std::size_t ProcessTable::bytes_of(std::string_view text) {
  // The string, its heap part, the shared_ptr's counts, and a node and bucket of the map.
  return sizeof(std::string) + text.size() + 1 + 16 + sizeof(std::string_view) + sizeof(SharedString) + 24;
}

ProcessTable::SharedString ProcessTable::share(std::string_view text) {
  text = text.substr(0, kLongestString);
  auto found = strings_.find(text);
  if (found != strings_.end()) return found->second;
  auto shared = std::make_shared<const std::string>(text);
  strings_.emplace(*shared, shared);
  budget_.take(bytes_of(text));
  return shared;
}

std::uint32_t ProcessTable::find(ProcessId id) const {
  return index_.find(hash_of(id), [&](std::uint32_t other) { return records_[other].id == id; });
}

std::optional<std::uint32_t> ProcessTable::create(ProcessId id) {
  if (!budget_.has_room(2 * (bytes_of({}) + kLongestString))) return std::nullopt;  // its strings
  if (!index_.make_room([&](std::uint32_t other) { return hash_of(records_[other].id); })) return std::nullopt;
  std::optional<std::uint32_t> process = records_.allocate();
  if (!process) return std::nullopt;
  records_.writable(*process).id = id;
  index_.insert(hash_of(id), *process);
  return process;
}

std::optional<std::uint32_t> ProcessTable::add_thread(ProcessId id, std::string_view comm, bool main_thread,
                                                      std::uint32_t sequence) {
  std::uint32_t process = find(id);
  bool created = process == IdIndex::kNone;
  if (created) {
    std::optional<std::uint32_t> fresh = create(id);
    if (!fresh) return std::nullopt;
    process = *fresh;
  }
  ProcessRecord& record = records_.writable(process);
  if (created) record.only_sampled = true;
  if (created || (record.only_sampled && main_thread)) record.comm = share(comm);
  ++record.threads;
  records_.set_stamp(process, std::max(records_.stamp(process), sequence));
  return process;
}

void ProcessTable::remove_thread(std::uint32_t process) { --records_.writable(process).threads; }

bool ProcessTable::update(const ProcessInfo& info, std::uint32_t sequence) {
  std::uint32_t process = find(info.id);
  if (process == IdIndex::kNone) {
    std::optional<std::uint32_t> fresh = create(info.id);
    if (!fresh) return false;
    process = *fresh;
  }
  ProcessRecord& record = records_.writable(process);
  record.comm = share(info.comm);
  record.executable = info.executable.empty() ? nullptr : share(info.executable);
  record.cgroup_id = info.cgroup_id;
  record.started_ns = ns_or_none(info.started);
  record.ended_ns = ns_or_none(info.ended);
  record.only_sampled = false;
  records_.set_stamp(process, sequence);
  return true;
}

void ProcessTable::sweep(std::uint32_t sequence, bool even_running) {
  std::size_t before = records_.size();
  records_.for_each([&](std::uint32_t process) {
    const ProcessRecord& record = records_[process];
    if (record.threads != 0 || sequence < records_.stamp(process) + 2) return;
    bool over = record.only_sampled || record.ended_ns != ProcessRecord::kNoTime;
    if (over || even_running) records_.release(process);
  });
  if (records_.size() == before) return;
  records_.trim();
  index_.reset(records_.size());
  records_.for_each([&](std::uint32_t process) { index_.insert(hash_of(records_[process].id), process); });
  // A string that only snapshots still hold is forgotten one sweep later, which costs nothing but a little memory.
  for (auto it = strings_.begin(); it != strings_.end();) {
    if (it->second.use_count() == 1) {
      budget_.give_back(bytes_of(it->first));
      SharedString last = it->second;  // the key views into it
      it = strings_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace flamed::store
