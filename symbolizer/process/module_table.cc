// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/module_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kRequestQueue = 4096;
constexpr std::int64_t kLookForNewerNs = 30 * kNsPerSecond;
/// When a file that was closed to make room may be opened again.
constexpr std::int64_t kCrowdedOutNs = 30 * kNsPerSecond;
/// When a file that has changed since it was closed may be opened again for its names.
constexpr std::int64_t kChangedNs = 600 * kNsPerSecond;
constexpr const char* kNotOpened = "its file has not been opened yet";

ModulePtr make_module(ModuleId id, ModuleKind kind, std::string path, const ProcessId& owner, Fd file,
                      std::string why_no_file) {
  auto module = std::make_shared<Module>();
  module->id = id;
  module->kind = kind;
  module->path = std::move(path);
  module->owner = owner;
  module->file = std::move(file);
  module->why_no_file = std::move(why_no_file);
  return module;
}

std::string too_many_files(std::size_t limit) {
  return "flamed holds its limit of " + std::to_string(limit) + " open files already; raise LimitNOFILE of its service";
}

std::optional<FileVersion> version_of(int file) {
  const std::optional<FileIdentity> identity = identity_of(file);
  return identity ? std::optional(identity->version) : std::nullopt;
}

/// The same module, with nothing open.
std::shared_ptr<Module> without_files(const Module& module) {
  auto copy = std::make_shared<Module>();
  copy->id = module.id;
  copy->kind = module.kind;
  copy->path = module.path;
  copy->owner = module.owner;
  copy->why_no_file = module.why_no_file;
  copy->names = module.names;
  return copy;
}

}  // namespace

ModuleTable::ModuleTable(std::size_t open_file_limit, const Clock& clock, std::size_t names_budget_bytes)
    : open_file_limit_(open_file_limit),
      names_budget_bytes_(names_budget_bytes),
      clock_(clock),
      requests_(kRequestQueue) {
  entries_[kKernelModule] = {make_module(kKernelModule, ModuleKind::kKernel, "[kernel]", {}, Fd(), ""), {}};
  entries_[kVdsoModule] = {make_module(kVdsoModule, ModuleKind::kVdso, "[vdso]", {}, Fd(), ""), {}};
}

ModuleId ModuleTable::enter(ModuleKind kind, std::string path, const ProcessId& owner, const FileKey& key) {
  const ModuleId id{next_id_++};
  std::string why = kind == ModuleKind::kFile ? kNotOpened : "";
  entries_[id] = {make_module(id, kind, std::move(path), owner, Fd(), std::move(why)), key};
  return id;
}

ModuleTable::Named<std::string_view> ModuleTable::name_of(const FileKey& key, std::string_view path) {
  return {key, path.substr(path.find_last_of('/') + 1)};
}

ModuleTable::MappedFile ModuleTable::file(const FileKey& key, std::string_view path) {
  const Named<std::string_view> name = name_of(key, path);
  std::unique_lock lock(mutex_);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    Entry& entry = *found->second.entry;
    reset_abandoned(entry);
    // The common case: programs and libraries that many processes map.
    if (entry.state == FileState::kOpen) return {found->second.module};
    // While the file is not open, it may be deleted and its inode reused; and some of its paths may not exist any more.
    if (entry.module->path != path) {
      auto moved = without_files(*entry.module);
      moved->path = std::string(path);
      entry.module = std::move(moved);
    }
    return {found->second.module, entry.module->is_closed()};
  }
  const ModuleId id = enter(ModuleKind::kFile, std::string(path), {}, key);
  by_name_.emplace(FileName{key, std::string(name.name)}, Place{id, &entries_.at(id)});
  return {id};
}

ModuleId ModuleTable::per_process(std::unordered_map<ProcessId, ModuleId>& ids, const ProcessId& owner,
                                  const char* path) {
  std::unique_lock lock(mutex_);
  const auto found = ids.find(owner);
  if (found != ids.end()) return found->second;
  const ModuleId id = enter(ModuleKind::kAnonymous, path, owner, {});
  ids.emplace(owner, id);
  if (const auto jit = jit_.find(owner); jit != jit_.end() && jit->second.files != nullptr) {
    show_jit(owner, jit->second.files);
  }
  return id;
}

ModuleId ModuleTable::anonymous(const ProcessId& owner) { return per_process(anonymous_, owner, "[anon]"); }
ModuleId ModuleTable::unmapped(const ProcessId& owner) { return per_process(unmapped_, owner, "[unmapped]"); }

ModuleTable::Wanted ModuleTable::want(const OpenRequest& request) {
  std::unique_lock lock(mutex_);
  auto found = entries_.find(request.module);
  if (found == entries_.end() || found->second.module->kind != ModuleKind::kFile) return {request.module};
  if (const auto newer = entries_.find(found->second.successor); newer != entries_.end()) found = newer;
  Entry& entry = found->second;
  const Wanted wanted{found->first, entry.module->is_closed()};
  reset_abandoned(entry);
  entry.wanted = true;
  entry.pid = request.pid;
  const bool may_retry = entry.state == FileState::kFailed || entry.state == FileState::kClosed;
  const bool retry = may_retry && clock_.monotonic() >= entry.retry_after;
  if (entry.state != FileState::kNotAsked && !retry) return wanted;
  OpenRequest copy = request;
  copy.module = found->first;
  copy.file = entry.key;
  copy.path = entry.module->path;
  if (requests_.try_push(std::move(copy))) entry.state = FileState::kQueued;
  return wanted;
}

void ModuleTable::want_jit(const ProcessId& owner, std::uint32_t user) {
  std::unique_lock lock(mutex_);
  if (!shows_jit(owner)) return;
  Jit& jit = jit_[owner];
  jit.user = user;
  if (!jit.queued && clock_.monotonic() >= jit.look_after) queue_jit(owner, jit);
}

/// Does the process have a module of its own memory that may still need names?
bool ModuleTable::shows_jit(const ProcessId& owner) const {
  for (const auto* ids : {&anonymous_, &unmapped_}) {
    const auto id = ids->find(owner);
    if (id != ids->end() && !entries_.at(id->second).module->is_closed()) return true;
  }
  return false;
}

void ModuleTable::queue_jit(const ProcessId& owner, Jit& jit) {
  OpenRequest request;
  request.jit_owner = owner;
  // Quick, and too late once the process has ended: it must not wait for unwind rows.
  jit.queued = requests_.try_push_front(std::move(request));
}

void ModuleTable::want_again(ModuleId module) { queue_open(module, false); }

void ModuleTable::want_functions(ModuleId module) { queue_open(module, true); }

void ModuleTable::queue_open(ModuleId module, bool only_functions) {
  std::shared_lock lock(mutex_);
  const auto found = entries_.find(module);
  if (found == entries_.end() || found->second.state != FileState::kOpen) return;
  OpenRequest request;
  request.module = module;
  request.only_functions = only_functions;
  // Refused only when thousands wait; the next sample asks again.
  static_cast<void>(requests_.try_push(std::move(request)));
}

std::optional<OpenRequest> ModuleTable::next_request(const std::stop_token& stop) { return requests_.pop(stop); }

ModuleId ModuleTable::finish(const OpenRequest& request, Result<Fd> opened) {
  const std::optional<FileVersion> version = opened ? version_of(opened->get()) : std::nullopt;
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(request.module);
  if (found == entries_.end()) return request.module;  // removed meanwhile
  Entry& entry = found->second;
  if (opened && !make_room(1, request.user)) opened = Error(too_many_files(open_file_limit_));
  if (!opened) {
    auto failed = without_files(*entry.module);
    entry.state = entry.closed_version ? FileState::kClosed : FileState::kFailed;
    entry.reopened = false;
    // A closed module keeps its own reason.
    if (!failed->is_closed()) failed->why_no_file = opened.error().message();
    entry.failures = std::min(entry.failures + 1, 10U);
    entry.retry_after = {clock_.monotonic().ns + (kNsPerSecond << entry.failures) / 2};
    entry.module = std::move(failed);
    ++failed_opens_;
    return request.module;
  }
  const bool has_changed = entry.closed_version && version != entry.closed_version;
  if (has_changed && entry.reopened) {
    entry.state = FileState::kClosed;
    entry.reopened = false;
    entry.retry_after = {clock_.monotonic().ns + kChangedNs};
    return request.module;
  }
  if (has_changed) return open_anew(entry, std::move(opened).value(), request.user);
  auto open = without_files(*entry.module);
  open->file = std::move(opened).value();
  open->why_no_file.clear();
  open->names = nullptr;
  entry.state = FileState::kOpen;
  entry.module = std::move(open);
  entry.user = request.user;
  open_files_.hold(request.module, request.user);
  if (entry.reopened) {
    // All names are to be read again.
    entry.names = nullptr;
    names_.release(request.module);
    set_abandoned(entry);
  }
  return request.module;
}

/// The file has changed since it was closed: new mappings belong to another module.
ModuleId ModuleTable::open_anew(Entry& entry, Fd file, std::uint32_t user) {
  const std::string path = entry.module->path;
  const FileKey key = entry.key;
  const std::int32_t pid = entry.pid;
  const ModuleId id = enter(ModuleKind::kFile, path, {}, key);
  entry.state = FileState::kClosed;
  entry.successor = id;
  Entry& newer = entries_.at(id);
  by_name_.insert_or_assign(FileName{key, std::string(name_of(key, path).name)}, Place{id, &newer});
  newer.module = make_module(id, ModuleKind::kFile, path, {}, std::move(file), {});
  newer.state = FileState::kOpen;
  newer.wanted = true;
  newer.pid = pid;
  newer.user = user;
  open_files_.hold(id, user);
  return id;
}

/// Makes room for `files` more of one user. False: there is no room.
bool ModuleTable::make_room(std::size_t files, std::uint32_t user) {
  if (files > open_file_limit_) return false;
  while (open_files_.total() + files > open_file_limit_) {
    const auto loss = open_files_.next_loss(user);
    if (!loss) return false;
    take_from(loss->key, loss->user);
  }
  return true;
}

void ModuleTable::take_from(const Holding& holding, std::uint32_t user) {
  const std::string whose = user == kNobodys ? "processes with several users" : "user " + std::to_string(user);
  const std::string why = "its file was closed to make room: flamed holds its limit of " +
                          std::to_string(open_file_limit_) + " open files, most of them for " + whose;
  ++files_crowded_out_;
  const MonotonicTime retry_after{clock_.monotonic().ns + kCrowdedOutNs};
  if (const auto* owner = std::get_if<ProcessId>(&holding)) {
    Jit& jit = jit_.at(*owner);
    JitFiles none;
    none.why_none = why;
    jit.look_after = retry_after;
    replace_jit(*owner, jit, std::make_shared<const JitFiles>(std::move(none)));
    return;
  }
  const auto id = std::get<ModuleId>(holding);
  Entry& entry = entries_.at(id);
  auto closed = without_files(*entry.module);
  closed->why_no_file = why;
  closed->names = entry.names;
  reset_abandoned(entry);
  entry.state = entry.names != nullptr ? FileState::kClosed : FileState::kFailed;
  entry.retry_after = retry_after;
  entry.module = std::move(closed);
  open_files_.release(id);
}

JitFilesPtr ModuleTable::jit_files(const ProcessId& owner) const {
  std::shared_lock lock(mutex_);
  const auto found = jit_.find(owner);
  return found == jit_.end() ? nullptr : found->second.files;
}

void ModuleTable::finish_jit(const ProcessId& owner, JitFiles found) {
  constexpr unsigned kMostFailures = 6;  // half a minute apart
  std::unique_lock lock(mutex_);
  const auto entry = jit_.find(owner);
  if (entry == jit_.end()) return;  // removed meanwhile
  Jit& jit = entry->second;
  jit.queued = false;
  if (!shows_jit(owner)) return;  // closed meanwhile `found` includes those that were open already.
  open_files_.release(owner);
  if (!make_room(found.files.size(), jit.user)) {
    found.files.clear();
    found.why_none = too_many_files(open_file_limit_);
  }
  std::int64_t distance_ns = kLookForNewerNs;
  if (found.files.empty()) {
    jit.failures = std::min(jit.failures + 1, kMostFailures);
    distance_ns = (kNsPerSecond << jit.failures) / 2;
  }
  jit.look_after = {clock_.monotonic().ns + distance_ns};
  replace_jit(owner, jit, std::make_shared<const JitFiles>(std::move(found)));
}

void ModuleTable::replace_jit(const ProcessId& owner, Jit& jit, JitFilesPtr files) {
  jit.files = std::move(files);
  if (jit.files == nullptr || jit.files->files.empty()) {
    open_files_.release(owner);
  } else {
    open_files_.hold(owner, jit.user, jit.files->files.size());
  }
  if (jit.files != nullptr) show_jit(owner, jit.files);
}

/// Sets the perf map and jitdump of the process's modules.
void ModuleTable::show_jit(const ProcessId& owner, const JitFilesPtr& files) {
  for (const auto* ids : {&anonymous_, &unmapped_}) {
    const auto id = ids->find(owner);
    if (id == ids->end()) continue;
    Entry& entry = entries_.at(id->second);
    if (entry.module->is_closed()) continue;
    auto newer = without_files(*entry.module);
    newer->jit = files;
    entry.module = std::move(newer);
  }
}

// ---- Closing ----

bool ModuleTable::has_files(const Entry& entry) const {
  if (entry.module->kind == ModuleKind::kFile) return entry.state == FileState::kOpen;
  return entry.module->jit != nullptr && !entry.module->jit->files.empty();
}

void ModuleTable::set_abandoned(Entry& entry) {
  if (entry.abandoned_since) return;
  entry.abandoned_since = clock_.monotonic();
  if (abandoned_++ == 0) has_abandoned_.notify_all();
}

void ModuleTable::reset_abandoned(Entry& entry) {
  entry.reopened = false;
  if (!entry.abandoned_since) return;
  entry.abandoned_since.reset();
  --abandoned_;
}

void ModuleTable::note_mapped(std::span<const ModuleId> mapped) {
  std::unique_lock lock(mutex_);
  std::vector<bool> is_mapped(next_id_);
  for (const ModuleId id : mapped) is_mapped[id.value] = true;
  for (auto& [id, entry] : entries_) {
    if (!has_files(entry)) continue;
    if (is_mapped[id.value]) {
      reset_abandoned(entry);
    } else {
      set_abandoned(entry);
    }
  }
}

bool ModuleTable::await_abandoned(const std::stop_token& stop) const {
  std::shared_lock lock(mutex_);
  return has_abandoned_.wait(lock, stop, [&] { return abandoned_ != 0; });
}

std::vector<ModuleTable::Abandoned> ModuleTable::abandoned(MonotonicTime until) const {
  std::vector<Abandoned> found;
  {
    std::shared_lock lock(mutex_);
    if (abandoned_ == 0) return found;
    for (const auto& [id, entry] : entries_) {
      if (entry.abandoned_since && *entry.abandoned_since <= until) {
        found.push_back({entry.module, *entry.abandoned_since, entry.names});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Abandoned& a, const Abandoned& b) { return a.since < b.since; });
  return found;
}

ModulePtr ModuleTable::close(const ModulePtr& module, KeptNamesPtr names, std::string why) {
  const std::optional<FileVersion> version = module->file ? version_of(module->file.get()) : std::nullopt;
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(module->id);
  if (found == entries_.end() || found->second.module != module || !found->second.abandoned_since) return nullptr;
  Entry& entry = found->second;
  reset_abandoned(entry);
  if (module->kind == ModuleKind::kFile) {
    entry.state = FileState::kClosed;
    // An unknown version equals no other.
    entry.closed_version = version.value_or(FileVersion{});
    entry.retry_after = {};
    entry.failures = 0;
    open_files_.release(module->id);
  } else if (const auto jit = jit_.find(module->owner); jit != jit_.end()) {
    entry.user = jit->second.user;
  }
  auto closed = without_files(*module);
  closed->why_no_file = std::move(why);
  closed->names = names;
  entry.module = std::move(closed);
  if (module->kind == ModuleKind::kAnonymous && !shows_jit(module->owner)) {
    if (const auto jit = jit_.find(module->owner); jit != jit_.end()) replace_jit(module->owner, jit->second, nullptr);
  }
  keep_names(entry, std::move(names));
  return entries_.at(module->id).module;
}

bool ModuleTable::reopen(ModuleId id) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.module->kind != ModuleKind::kFile) return false;
  Entry& entry = found->second;
  if (entry.reopened) return true;
  if (entry.state != FileState::kClosed || clock_.monotonic() < entry.retry_after) return false;
  OpenRequest request;
  request.module = id;
  request.file = entry.key;
  request.path = entry.module->path;
  request.user = entry.user;
  if (!requests_.try_push(std::move(request))) return false;
  entry.state = FileState::kQueued;
  entry.reopened = true;
  return true;
}

/// Within the budget: the user with the most loses the names of their file that was closed first.
void ModuleTable::keep_names(Entry& entry, KeptNamesPtr names) {
  const ModuleId id = entry.module->id;
  const std::uint32_t user = entry.user;
  names_.hold(id, user, names->bytes());
  entry.names = std::move(names);
  while (names_.total() > names_budget_bytes_) {
    const auto loss = names_.next_loss(user);
    if (!loss) return;
    drop_names(loss->key);
  }
}

void ModuleTable::drop_names(ModuleId id) {
  names_.release(id);
  ++names_dropped_;
  Entry& entry = entries_.at(id);
  entry.names = nullptr;
  if (!entry.module->is_closed()) return;
  auto nameless = without_files(*entry.module);
  nameless->names = std::make_shared<const KeptNames>();
  nameless->why_no_file =
      "its file was closed when no process had it mapped any more, and its names were dropped to "
      "keep those of closed files within " +
      format_size(names_budget_bytes_);
  entry.module = std::move(nameless);
}

void ModuleTable::retain(std::span<const ModuleId> live) {
  std::unique_lock lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->first < kFirstFreeModule || std::binary_search(live.begin(), live.end(), it->first)) {
      ++it;
      continue;
    }
    forget(it->second);
    it = entries_.erase(it);
  }
}

void ModuleTable::forget_unwanted(std::span<const ModuleId> mapped) {
  std::unique_lock lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (entry.module->kind != ModuleKind::kFile || entry.wanted ||
        std::binary_search(mapped.begin(), mapped.end(), it->first)) {
      ++it;
      continue;
    }
    forget(entry);
    it = entries_.erase(it);
  }
}

void ModuleTable::forget(const Entry& entry) {
  const Module& module = *entry.module;
  open_files_.release(module.id);
  names_.release(module.id);
  if (entry.abandoned_since) --abandoned_;
  if (module.kind == ModuleKind::kFile) {
    const auto named = by_name_.find(name_of(entry.key, module.path));
    // Unless its successor has replaced it.
    if (named != by_name_.end() && named->second.entry == &entry) by_name_.erase(named);
    return;
  }
  for (auto* ids : {&anonymous_, &unmapped_}) {
    const auto owned = ids->find(module.owner);
    if (owned != ids->end() && owned->second == module.id) ids->erase(owned);
  }
  if (anonymous_.count(module.owner) != 0 || unmapped_.count(module.owner) != 0) return;
  if (const auto jit = jit_.find(module.owner); jit != jit_.end()) {
    replace_jit(module.owner, jit->second, nullptr);
    jit_.erase(jit);
  }
}

ModulePtr ModuleTable::find(ModuleId id) const {
  std::shared_lock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.module;
}

std::int32_t ModuleTable::process_of(ModuleId id) const {
  std::shared_lock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? 0 : found->second.pid;
}

ModuleTable::Stats ModuleTable::stats() const {
  std::shared_lock lock(mutex_);
  Stats stats;
  stats.modules = entries_.size();
  stats.open_files = open_files_.total();
  stats.names_bytes = names_.total();
  stats.names_dropped = names_dropped_;
  stats.files_crowded_out = files_crowded_out_;
  stats.failed_opens = failed_opens_;
  stats.refused_requests = requests_.refused();
  return stats;
}

}  // namespace flamed::symbolizer
