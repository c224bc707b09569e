// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/guarded_opener.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "symbolizer/file_key.h"
#include "symbolizer/mount_info.h"
#include "symbolizer/proc_folder.h"
#include "symbolizer/process_status.h"

namespace flamed::symbolizer {
namespace {

/// In one place there is at most one; so many that hang at once are a machine with other worries.
constexpr std::size_t kMostHung = 16;
constexpr std::string_view kDevice = "device ";
constexpr const char* kHostPlace = "host";
constexpr const char* kEndedPlace = "processes that have ended";
constexpr std::size_t kStatusLimitBytes = 16'384;

Error hangs() { return Error("a file system does not answer", ETIMEDOUT); }

}  // namespace

GuardedOpener::~GuardedOpener() {
  for (Hung& hung : hung_) hung.helper.end();
  if (helper_) helper_->end();
}

Result<Fd> GuardedOpener::open_module(const OpenRequest& request) {
  std::lock_guard lock(mutex_);
  forget_ended();
  std::function<Place()> place = [&] { return place_of(request); };
  ModuleSearch search = ModuleSearch::kMappingsAndPaths;
  // What somebody's paths lead to says nothing of the files that he has mapped.
  if (!hung_.empty() && !place().starts_with(kDevice) && is_hung(place())) {
    search = ModuleSearch::kMappings;
    place = [&] { return "mappings of " + place_of(request); };
  }
  Result<Fd> file = ask<Fd>(place, [&](OpenHelper& helper) { return helper.open_module(request, search); });
  if (!file) return std::move(file).error().with_context(request.path);
  return file;
}

Result<JitFiles> GuardedOpener::find_jit_files(const ProcessId& owner) {
  std::lock_guard lock(mutex_);
  forget_ended();
  return ask<JitFiles>([&] { return user_of(owner.pid); },
                       [&](OpenHelper& helper) { return helper.find_jit_files(owner); });
}

std::vector<RootFile> GuardedOpener::open(std::int32_t pid, std::span<const std::string> paths) {
  std::lock_guard lock(mutex_);
  forget_ended();
  std::vector<std::string> asked;
  std::vector<std::size_t> which;
  const std::vector<Place> places = hung_.empty() ? std::vector<Place>() : places_of(pid, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() >= PATH_MAX || (!places.empty() && is_hung(places[i]))) continue;
    asked.push_back(paths[i]);
    which.push_back(i);
  }
  std::vector<RootFile> files(paths.size());
  if (asked.empty()) return files;
  // Of several the one that is likeliest to have been it.
  const auto place = [&] {
    const std::vector<Place> all = places_of(pid, asked);
    const auto device = std::find_if(all.begin(), all.end(), [](const Place& one) { return one.starts_with(kDevice); });
    return device != all.end() ? *device : all.front();
  };
  Result<std::vector<RootFile>> found =
      ask<std::vector<RootFile>>(place, [&](OpenHelper& helper) { return helper.open_in_root(pid, asked); });
  if (!found) return files;
  for (std::size_t i = 0; i < which.size(); ++i) files[which[i]] = std::move((*found)[i]);
  return files;
}

template <typename Answer>
Result<Answer> GuardedOpener::ask(const std::function<Place()>& place,
                                  const std::function<Result<Answer>(OpenHelper&)>& question) {
  if (!hung_.empty() && is_hung(place())) return hangs();
  if (hung_count_ >= kMostHung) return Error("too many file systems do not answer", ETIMEDOUT);
  if (!helper_) {
    Result<OpenHelper> started = OpenHelper::start(options_.program, options_.proc, options_.limit_ns);
    if (!started) return std::move(started).error();
    helper_ = std::move(started).value();
  }
  Result<Answer> answer = question(*helper_);
  if (helper_->state() == OpenHelper::State::kReady) {
    cpu_ns_ = ended_cpu_ns_ + helper_->cpu_ns();
    return answer;
  }
  ended_cpu_ns_ = cpu_ns_;
  if (helper_->state() == OpenHelper::State::kHangs) {
    ++timeouts_;
    hung_.push_back({std::move(*helper_), place(), std::nullopt});
    ++hung_count_;
    answer = hangs();
  } else {
    ended_.push_back(std::move(*helper_));
  }
  helper_.reset();
  return answer;
}

void GuardedOpener::forget_ended() {
  std::erase_if(ended_, [](OpenHelper& helper) { return helper.reap(); });
  if (hung_.empty()) return;
  const MonotonicTime now = clock_.monotonic();
  for (Hung& hung : hung_) {
    if (!hung.quiet_until && hung.helper.reap()) {
      hung.quiet_until = MonotonicTime{now.ns + options_.quiet_ns};
      --hung_count_;
    }
  }
  std::erase_if(hung_, [&](const Hung& hung) { return hung.quiet_until && hung.quiet_until->ns <= now.ns; });
}

bool GuardedOpener::is_hung(const Place& place) const {
  return std::any_of(hung_.begin(), hung_.end(), [&](const Hung& hung) { return hung.place == place; });
}

GuardedOpener::Place GuardedOpener::place_of(const OpenRequest& request) const {
  const auto user = [&] {
    Place place = user_of(request.pid);
    return place != kEndedPlace ? place : user_of(request.parent_pid);
  };
  const Place device = std::string(kDevice) + std::to_string(request.file.device_major) + ":" +
                       std::to_string(request.file.device_minor);
  for (const std::string& process : {std::to_string(request.pid), std::string("self")}) {
    const Result<std::string> mounts = read_file(options_.proc + "/" + process + "/mountinfo", kMountInfoLimitBytes);
    if (!mounts) continue;
    const std::string_view type = file_system_of(*mounts, request.file);
    if (!type.empty()) return may_hang(type) ? device : user();
  }
  // Devices with a number of their own are disks. The others are told in mappings otherwise than in mounts by some file
  // systems, or are mounted nowhere any more.
  return request.file.device_major == 0 ? device : user();
}

GuardedOpener::Place GuardedOpener::user_of(std::int32_t pid) const {
  const Result<std::string> text = read_file(proc_path(options_.proc, pid, "status"), kStatusLimitBytes);
  const std::optional<ProcessStatus> status = text ? parse_process_status(*text) : std::nullopt;
  return status ? "user " + std::to_string(status->uid.real) : kEndedPlace;
}

std::vector<GuardedOpener::Place> GuardedOpener::places_of(std::int32_t pid, std::span<const std::string> paths) const {
  const Result<std::string> mounts =
      read_file(pid == kHost ? options_.proc + "/self/mountinfo" : proc_path(options_.proc, pid, "mountinfo"),
                kMountInfoLimitBytes);
  const Place user = pid == kHost ? kHostPlace : user_of(pid);
  std::vector<Place> places;
  for (const std::string& path : paths) {
    const std::optional<DoubtfulMount> mount = mounts ? may_hang_on_the_way(*mounts, path) : std::nullopt;
    places.push_back(mount ? std::string(kDevice).append(mount->device) : user);
  }
  return places;
}

}  // namespace flamed::symbolizer
