// SPDX-License-Identifier: Apache-2.0
#include "store/ring/thread_table.h"

#include <algorithm>
#include <cstring>

namespace flamed::store {
namespace {

constexpr std::uint32_t kProcessMask = 0x7fffffffU;  ///< ids of a SharedArray are below

ThreadName fixed(std::string_view comm) {
  ThreadName name{};
  std::memcpy(name.data(), comm.data(), std::min(comm.size(), name.size()));
  return name;
}

}  // namespace

std::uint64_t ThreadTable::hash_of(ProcessId process, std::int32_t tid, const ThreadName& comm,
                                   const Owner& owner) const {
  std::uint64_t words[2];
  static_assert(sizeof(words) == sizeof(ThreadName));
  std::memcpy(words, comm.data(), sizeof(words));
  std::uint64_t hash = hash_with(mix(key_), words[0], key_);
  hash = hash_with(hash, words[1], key_);
  hash = hash_with(hash, process.start_ticks ^ (static_cast<std::uint64_t>(process.pid) << 32), key_);
  // No tid needs the highest bit.
  const std::uint32_t low = static_cast<std::uint32_t>(tid) | (owner.is_hidden ? 1U << 31 : 0);
  return hash_with(hash, low | (static_cast<std::uint64_t>(owner.user) << 32), key_);
}

std::uint64_t ThreadTable::hash_of(std::uint32_t thread) const {
  const ThreadRecord& record = records_[thread];
  return hash_of(processes_[record.process].id, record.tid, record.comm, {record.owner, record.is_hidden != 0});
}

std::optional<std::uint32_t> ThreadTable::intern(ProcessId process, std::int32_t tid, std::string_view comm,
                                                 Owner owner, bool is_waiting, std::uint32_t sequence) {
  ThreadName name = fixed(comm);
  std::uint64_t h = hash_of(process, tid, name, owner);
  std::uint32_t found = index_.find(h, [&](std::uint32_t id) {
    const ThreadRecord& record = records_[id];
    return record.tid == tid && record.comm == name && Owner{record.owner, record.is_hidden != 0} == owner &&
           processes_[record.process].id == process;
  });
  if (found != IdIndex::kNone) {
    processes_.note_sample(records_[found].process, owner, is_waiting);
    return found;
  }
  if (!index_.make_room([&](std::uint32_t id) { return hash_of(id); })) return std::nullopt;
  std::optional<std::uint32_t> id = records_.allocate();
  if (!id) return std::nullopt;
  std::optional<std::uint32_t> place = processes_.add_thread(process, comm, tid == process.pid, sequence);
  if (!place) {
    records_.release(*id);
    return std::nullopt;
  }
  processes_.note_sample(*place, owner, is_waiting);
  ThreadRecord& record = records_.writable(*id);
  record = ThreadRecord{.tid = tid, .comm = name, .owner = owner.user};
  record.process = *place & kProcessMask;
  record.is_hidden = owner.is_hidden ? 1 : 0;
  index_.insert(h, *id);
  return id;
}

void ThreadTable::rebuild_index() {
  records_.trim();
  index_.reset(records_.size());
  records_.for_each([&](std::uint32_t id) { index_.insert(hash_of(id), id); });
}

}  // namespace flamed::store
