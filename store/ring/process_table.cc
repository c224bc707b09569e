// SPDX-License-Identifier: Apache-2.0
#include "store/ring/process_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace flamed::store {
namespace {

// Longer than any path of the kernel (PATH_MAX).
constexpr std::size_t kLongestString = 4096;
/// Every process of a build has its own command line of kilobytes. Once all of them take this part of the budget, only
/// the beginning of further ones is kept.
constexpr std::size_t kCommandLinesPart = 16;
constexpr std::size_t kShortCommandLine = 128;
constexpr std::string_view kCut = "...";
constexpr unsigned kSweepsPerTidying = 60;

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
  ProcessInfo info{
      id, *comm, executable ? *executable : std::string(), cgroup_id, time_or_none(started_ns), time_or_none(ended_ns)};
  info.parent_pid = parent_pid;
  info.parent_start_ticks = parent_start_ticks;
  if (user() != kNoUser) info.uid = user();
  if (command_line) info.command_line = *command_line;
  if (place) {
    info.cgroup = place->cgroup;
    info.unit = place->unit;
    info.container = place->container;
  }
  return info;
}

ProcessTable::~ProcessTable() {
  for (const auto& [text, shared] : strings_) budget_.give_back(bytes_of(text));
  budget_.give_back(command_line_bytes_);
  for (const auto& [key, place] : places_) budget_.give_back(bytes_of(key, *place));
}

std::size_t ProcessTable::bytes_of(std::string_view text) {
  // The string, its heap memory, its reference count, and a node and bucket of the map.
  return sizeof(std::string) + text.size() + 1 + SharedString::kOverheadBytes + sizeof(std::string_view) +
         sizeof(SharedString) + 24;
}

std::size_t ProcessTable::bytes_of(const std::string& key, const ProcessRecord::Place& place) {
  // The place, the heap memory of the four strings, its reference count, and a node and bucket of the map.
  return sizeof(place) + key.size() + place.cgroup.size() + place.unit.size() + place.container.size() + 4 +
         SharedPlace::kOverheadBytes + sizeof(std::string) + sizeof(SharedPlace) + 24;
}

ProcessTable::SharedString ProcessTable::share(std::string_view text) {
  text = text.substr(0, kLongestString);
  auto found = strings_.find(text);
  if (found != strings_.end()) return found->second;
  SharedString shared{std::string(text)};
  strings_.emplace(*shared, shared);
  budget_.take(bytes_of(text));
  return shared;
}

ProcessTable::SharedString ProcessTable::share_command_line(std::string_view text) {
  text = text.substr(0, kLongestString);
  if (const auto found = command_lines_.find(text); found != command_lines_.end()) return found->second;
  std::string kept(text);
  if (command_line_bytes_ > budget_.limit_bytes() / kCommandLinesPart && kept.size() > kShortCommandLine) {
    std::size_t cut = kShortCommandLine;
    // Not within a character of UTF-8, whose further bytes are 10xxxxxx.
    while (cut > 0 && (static_cast<unsigned char>(kept[cut]) & 0xC0U) == 0x80U) --cut;
    kept.resize(cut);
    kept += kCut;
    if (const auto found = command_lines_.find(kept); found != command_lines_.end()) return found->second;
  }
  const std::size_t bytes = bytes_of(kept);
  SharedString shared(std::move(kept));
  command_lines_.emplace(*shared, shared);
  budget_.take(bytes);
  command_line_bytes_ += bytes;
  return shared;
}

ProcessTable::SharedPlace ProcessTable::share_place(const ProcessInfo& info) {
  const auto limited = [](const std::string& text) { return text.substr(0, kLongestString); };
  ProcessRecord::Place place{limited(info.cgroup), limited(info.unit), limited(info.container)};
  // The parts have no NUL: paths have none.
  std::string key = place.cgroup + '\0' + place.unit + '\0' + place.container;
  if (const auto found = places_.find(key); found != places_.end()) return found->second;
  budget_.take(bytes_of(key, place));
  return places_.emplace(std::move(key), SharedPlace(std::move(place))).first->second;
}

void ProcessTable::forget_unused_strings() {
  // A string that only snapshots still hold is dropped one sweep later, which costs only a little memory.
  const auto forget = [&](std::unordered_map<std::string_view, SharedString, KeyedTextHash>& strings) {
    std::size_t bytes = 0;
    for (auto it = strings.begin(); it != strings.end();) {
      if (!it->second.is_only_holder()) {
        ++it;
        continue;
      }
      bytes += bytes_of(it->first);
      const SharedString last = it->second;  // the key is a view into it
      it = strings.erase(it);
    }
    budget_.give_back(bytes);
    return bytes;
  };
  forget(strings_);
  command_line_bytes_ -= forget(command_lines_);
  for (auto it = places_.begin(); it != places_.end();) {
    if (!it->second.is_only_holder()) {
      ++it;
      continue;
    }
    budget_.give_back(bytes_of(it->first, *it->second));
    it = places_.erase(it);
  }
}

std::uint32_t ProcessTable::find(ProcessId id) const {
  return index_.find(hash_of(id), [&](std::uint32_t other) { return records_[other].id == id; });
}

std::optional<std::uint32_t> ProcessTable::create(ProcessId id) {
  if (!budget_.has_room(4 * (bytes_of({}) + kLongestString))) return std::nullopt;  // its strings
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
  if (created || (record.only_sampled && (main_thread || record.comm->empty()))) record.comm = share(comm);
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
  record.command_line = info.command_line.empty() ? nullptr : share_command_line(info.command_line);
  record.place = info.cgroup.empty() ? nullptr : share_place(info);
  record.cgroup_id = info.cgroup_id;
  record.uid = info.uid.value_or(kNoUser);
  record.started_ns = ns_or_none(info.started);
  record.ended_ns = ns_or_none(info.ended);
  record.only_sampled = false;
  records_.set_stamp(process, sequence);
  set_parent(process, {info.parent_pid, info.parent_start_ticks}, sequence);
  return true;
}

bool ProcessTable::end(ProcessId id, WallTime ended, std::uint32_t sequence) {
  const std::uint32_t process = find(id);
  if (process == IdIndex::kNone || records_[process].only_sampled) return false;
  records_.writable(process).ended_ns = ended.ns;
  records_.set_stamp(process, sequence);
  return true;
}

void ProcessTable::set_parent(std::uint32_t process, ProcessId parent, std::uint32_t sequence) {
  if (ProcessId{records_[process].parent_pid, records_[process].parent_start_ticks} == parent) return;
  forget_parent(process);
  if (parent == records_[process].id) return;
  if (parent.pid != 0 && parent.start_ticks != 0) {
    std::uint32_t known = find(parent);
    if (known == IdIndex::kNone) {
      // The parent's update is still to come, or it ended before anything was known about it.
      const std::optional<std::uint32_t> fresh = create(parent);
      if (!fresh) return;
      known = *fresh;
      ProcessRecord& record = records_.writable(known);
      record.only_sampled = true;
      record.comm = share({});
      records_.set_stamp(known, sequence);
    }
    ++records_.writable(known).children;
  }
  ProcessRecord& record = records_.writable(process);
  record.parent_pid = parent.pid;
  record.parent_start_ticks = parent.start_ticks;
}

void ProcessTable::forget_parent(std::uint32_t process) {
  ProcessRecord& record = records_.writable(process);
  const ProcessId parent{std::exchange(record.parent_pid, 0), std::exchange(record.parent_start_ticks, 0)};
  if (parent.pid != 0 && parent.start_ticks != 0) --records_.writable(find(parent)).children;
}

void ProcessTable::sweep(std::uint32_t sequence, bool even_running) {
  std::size_t before = records_.size();
  records_.for_each([&](std::uint32_t process) {
    const ProcessRecord& record = records_[process];
    if (record.threads != 0 || record.children != 0 || sequence < records_.stamp(process) + 2) return;
    bool over = record.only_sampled || record.ended_ns != ProcessRecord::kNoTime;
    if (!over && !even_running) return;
    forget_parent(process);
    records_.release(process);
  });
  if (records_.size() == before) {
    // Running processes may change their names all the time.
    if (++sweeps_ % kSweepsPerTidying == 0) forget_unused_strings();
    return;
  }
  records_.trim();
  index_.reset(records_.size());
  records_.for_each([&](std::uint32_t process) { index_.insert(hash_of(records_[process].id), process); });
  forget_unused_strings();
}

}  // namespace flamed::store
