// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kRequestQueue = 4096;
constexpr std::int64_t kLookForNewerNs = 30 * kNsPerSecond;
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

std::string_view last_part(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string too_many_files(std::size_t limit) {
  return "flamed holds its limit of " + std::to_string(limit) + " open files already; raise LimitNOFILE of its service";
}

/// The same module with other files to name its code.
void show_jit(ModulePtr& module, JitFilesPtr files) {
  auto newer = std::make_shared<Module>();
  newer->id = module->id;
  newer->kind = module->kind;
  newer->path = module->path;
  newer->owner = module->owner;
  newer->jit = std::move(files);
  module = std::move(newer);
}

}  // namespace

ModuleTable::ModuleTable(std::size_t open_file_limit, const Clock& clock)
    : open_file_limit_(open_file_limit), clock_(clock), requests_(kRequestQueue) {
  entries_[kKernelModule] = {make_module(kKernelModule, ModuleKind::kKernel, "[kernel]", {}, Fd(), ""), {}};
  entries_[kVdsoModule] = {make_module(kVdsoModule, ModuleKind::kVdso, "[vdso]", {}, Fd(), ""), {}};
}

ModuleId ModuleTable::enter(ModuleKind kind, std::string path, const ProcessId& owner, const FileKey& key) {
  const ModuleId id{next_id_++};
  std::string why = kind == ModuleKind::kFile ? kNotOpened : "";
  entries_[id] = {make_module(id, kind, std::move(path), owner, Fd(), std::move(why)), key};
  return id;
}

ModuleId ModuleTable::file(const FileKey& key, std::string_view path) {
  std::unique_lock lock(mutex_);
  auto& names = by_file_[key];
  const auto found = names.find(last_part(path));
  if (found != names.end()) {
    Entry& entry = entries_.at(found->second);
    // While nobody holds it open, the file may be deleted and its inode be another file's; and of one file's names,
    // some may lead nowhere by now.
    if (entry.state != FileState::kOpen && entry.module->path != path) {
      entry.module =
          make_module(found->second, ModuleKind::kFile, std::string(path), {}, Fd(), entry.module->why_no_file);
    }
    return found->second;
  }
  const ModuleId id = enter(ModuleKind::kFile, std::string(path), {}, key);
  names.emplace(last_part(path), id);
  return id;
}

ModuleId ModuleTable::per_process(std::unordered_map<ProcessId, ModuleId>& ids, const ProcessId& owner,
                                  const char* path) {
  std::unique_lock lock(mutex_);
  const auto found = ids.find(owner);
  if (found != ids.end()) return found->second;
  const ModuleId id = enter(ModuleKind::kAnonymous, path, owner, {});
  ids.emplace(owner, id);
  if (const auto jit = jit_.find(owner); jit != jit_.end() && jit->second.files != nullptr) {
    show_jit(entries_.at(id).module, jit->second.files);
  }
  return id;
}

ModuleId ModuleTable::anonymous(const ProcessId& owner) { return per_process(anonymous_, owner, "[anon]"); }
ModuleId ModuleTable::unmapped(const ProcessId& owner) { return per_process(unmapped_, owner, "[unmapped]"); }

void ModuleTable::want(const OpenRequest& request) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(request.module);
  if (found == entries_.end() || found->second.module->kind != ModuleKind::kFile) return;
  Entry& entry = found->second;
  entry.wanted = true;
  entry.pid = request.pid;
  const bool retry = entry.state == FileState::kFailed && clock_.monotonic() >= entry.retry_after;
  if (entry.state != FileState::kNotAsked && !retry) return;
  OpenRequest copy = request;
  copy.file = entry.key;
  copy.path = entry.module->path;
  if (requests_.try_push(std::move(copy))) entry.state = FileState::kQueued;
}

void ModuleTable::want_jit(const ProcessId& owner, bool new_code) {
  std::unique_lock lock(mutex_);
  if (anonymous_.count(owner) == 0 && unmapped_.count(owner) == 0) return;
  Jit& jit = jit_[owner];
  jit.new_code = jit.new_code || new_code;
  if (jit.queued || clock_.monotonic() < jit.look_after) return;
  queue_jit(owner, jit);
}

void ModuleTable::queue_jit(const ProcessId& owner, Jit& jit) {
  OpenRequest request;
  request.jit_owner = owner;
  // Quickly done, and too late once the process has ended: it doesn't wait for unwind rows to be built.
  jit.queued = requests_.try_push_front(std::move(request));
}

bool ModuleTable::has_new_jit_code(const ProcessId& owner) const {
  std::shared_lock lock(mutex_);
  const auto found = jit_.find(owner);
  return found != jit_.end() && found->second.new_code;
}

void ModuleTable::clear_new_jit_code(const ProcessId& owner) {
  std::unique_lock lock(mutex_);
  if (const auto found = jit_.find(owner); found != jit_.end()) found->second.new_code = false;
}

void ModuleTable::note_jvm(const ProcessId& owner, std::string problem) {
  std::unique_lock lock(mutex_);
  const auto found = jit_.find(owner);
  if (found == jit_.end()) return;
  found->second.jvm_problem = std::move(problem);
  if (!found->second.queued) queue_jit(owner, found->second);
}

void ModuleTable::want_again(ModuleId module) {
  std::shared_lock lock(mutex_);
  const auto found = entries_.find(module);
  if (found == entries_.end() || found->second.state != FileState::kOpen) return;
  OpenRequest request;
  request.module = module;
  // Refused only when thousands wait: whoever needs it asks again.
  static_cast<void>(requests_.try_push(std::move(request)));
}

std::optional<OpenRequest> ModuleTable::next_request(const std::stop_token& stop) { return requests_.pop(stop); }

void ModuleTable::finish(const OpenRequest& request, Result<Fd> opened) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(request.module);
  if (found == entries_.end()) return;  // let go meanwhile
  Entry& entry = found->second;
  if (opened && open_files_ >= open_file_limit_) {
    opened = Error(too_many_files(open_file_limit_));
  }
  Fd file;
  std::string why;
  if (opened) {
    file = std::move(opened).value();
    entry.state = FileState::kOpen;
    ++open_files_;
  } else {
    why = opened.error().message();
    entry.state = FileState::kFailed;
    entry.failures = std::min(entry.failures + 1, 10U);
    entry.retry_after = {clock_.monotonic().ns + (kNsPerSecond << entry.failures) / 2};
    ++failed_opens_;
  }
  entry.module =
      make_module(request.module, ModuleKind::kFile, entry.module->path, {}, std::move(file), std::move(why));
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
  if (entry == jit_.end()) return;  // let go meanwhile
  Jit& jit = entry->second;
  const std::size_t held = jit.files != nullptr ? jit.files->files.size() : 0;
  if (found.files.size() > held && open_files_ + found.files.size() - held > open_file_limit_) {
    found.files.clear();
    found.why_none = too_many_files(open_file_limit_);
  }
  std::int64_t distance_ns = kLookForNewerNs;
  if (found.files.empty()) {
    jit.failures = std::min(jit.failures + 1, kMostFailures);
    distance_ns = (kNsPerSecond << jit.failures) / 2;
  }
  jit.queued = false;
  jit.look_after = {clock_.monotonic().ns + distance_ns};
  if (found.files.empty() && !jit.jvm_problem.empty()) {
    found.why_none += "; flamed asked the JVM for it in vain: " + jit.jvm_problem;
  }
  replace_jit(jit, std::make_shared<const JitFiles>(std::move(found)));
  for (const auto* ids : {&anonymous_, &unmapped_}) {
    if (const auto id = ids->find(owner); id != ids->end()) show_jit(entries_.at(id->second).module, jit.files);
  }
}

void ModuleTable::replace_jit(Jit& jit, JitFilesPtr files) {
  if (jit.files != nullptr) open_files_ -= jit.files->files.size();
  jit.files = std::move(files);
  if (jit.files != nullptr) open_files_ += jit.files->files.size();
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
  if (entry.state == FileState::kOpen) --open_files_;
  if (module.kind == ModuleKind::kFile) {
    const auto names = by_file_.find(entry.key);
    names->second.erase(std::string(last_part(module.path)));
    if (names->second.empty()) by_file_.erase(names);
    return;
  }
  for (auto* ids : {&anonymous_, &unmapped_}) {
    const auto owned = ids->find(module.owner);
    if (owned != ids->end() && owned->second == module.id) ids->erase(owned);
  }
  if (anonymous_.count(module.owner) != 0 || unmapped_.count(module.owner) != 0) return;
  if (const auto jit = jit_.find(module.owner); jit != jit_.end()) {
    replace_jit(jit->second, nullptr);
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
  return {entries_.size(), open_files_, failed_opens_, requests_.refused()};
}

}  // namespace flamed::symbolizer
