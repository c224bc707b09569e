// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/guarded_opener.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

#include "base/file.h"
#include "symbolizer/model/file_key.h"
#include "symbolizer/opener/module_opener.h"
#include "symbolizer/process/mount_info.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/process_status.h"

namespace flamed::symbolizer {
namespace {

/// Limits of hanging places: a machine with more has other problems; more of one user are his own fault.
constexpr std::size_t kMostHung = 16;
constexpr std::size_t kMostOfOneUser = 4;
/// A disk may be busy for longer than the timeout of a server, and that is nobody's fault.
constexpr std::int64_t kLocalLimits = 5;
/// A place that takes 1/n of the limit is slow, and is not used again for so many times the time that it took.
constexpr std::int64_t kSlowParts = 4;
constexpr std::int64_t kRests = 10;
constexpr int kMostAttempts = 5;
constexpr std::size_t kStatusLimitBytes = 16'384;

Error hangs(const std::string& place) { return Error("a file system does not answer (" + place + ")", ETIMEDOUT); }

std::string device_name(std::string_view device) { return std::string("device ").append(device); }

}  // namespace

GuardedOpener::GuardedOpener(const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

GuardedOpener::~GuardedOpener() {
  for (Hung& hung : hung_) hung.helper.end();
  if (helper_) helper_->end();
}

void GuardedOpener::stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  // If it fails, waits end at the limit.
  static_cast<void>(::write(cancel_.get(), &one, sizeof(one)) != sizeof(one));
}

Result<Fd> GuardedOpener::open_module(const OpenRequest& request) {
  std::lock_guard lock(mutex_);
  forget_ended();
  Result<Fd> mapped = ask<Fd>(place_of_mapping(request),
                              [&](OpenHelper& helper) { return helper.open_module(request, ModuleSearch::kMappings); });
  if (mapped || mapped.error().code() == ETIMEDOUT || !request.path.starts_with('/')) return mapped;
  Result<Fd> found = ask<Fd>(place_of_path(view_of(request.pid), request.path),
                             [&](OpenHelper& helper) { return helper.open_module(request, ModuleSearch::kPaths); });
  if (found) return found;
  return Error(mapped.error().message() + "; " + found.error().message(), found.error().code());
}

Result<JitFiles> GuardedOpener::find_jit_files(const ProcessId& owner) {
  std::lock_guard lock(mutex_);
  forget_ended();
  // Only for the place of the user: find_jit_files() leaves out file systems that may hang according to the mounts.
  const std::string user = user_of(owner.pid);
  if (user.empty()) return Error("the process has ended");
  return ask<JitFiles>({"paths of " + user, user}, [&](OpenHelper& helper) { return helper.find_jit_files(owner); });
}

Result<Fd> GuardedOpener::open_memory(const ProcessId& process) {
  std::lock_guard lock(mutex_);
  forget_ended();
  const std::string user = user_of(process.pid);
  if (user.empty()) return Error("the process has ended", ESRCH);
  return ask<Fd>({"memory of " + user, user}, [&](OpenHelper& helper) { return helper.open_memory(process); });
}

Result<ContainerFiles> GuardedOpener::find_container_files(const std::string& id) {
  std::lock_guard lock(mutex_);
  forget_ended();
  return ask<ContainerFiles>({"files of container runtimes", {}, /*is_local=*/true},
                             [&](OpenHelper& helper) { return helper.find_container_files(id); });
}

Result<Fd> GuardedOpener::connect_engine(const std::string& path, std::string_view question) {
  std::lock_guard lock(mutex_);
  forget_ended();
  if (path.size() >= PATH_MAX) return Error("its path is not one of a file", ENAMETOOLONG);
  return ask<Fd>({"sockets of container engines", {}, /*is_local=*/true},
                 [&](OpenHelper& helper) { return helper.connect_engine(path, question); });
}

Result<SourceCopy> GuardedOpener::copy_source(const SourceRequest& request) {
  std::lock_guard lock(mutex_);
  forget_ended();
  const std::string user = user_of(request.process.pid);
  if (user.empty()) return Error("its process has ended", ESRCH);
  if (request.path.size() >= PATH_MAX) return Error("its path is not one of a file", ENAMETOOLONG);
  // copy_source() refuses file systems that may hang, so what is slow counts against the user alone.
  return ask<SourceCopy>({"sources of " + user, user}, [&](OpenHelper& helper) { return helper.copy_source(request); });
}

std::vector<RootFile> GuardedOpener::open(std::int32_t pid, std::span<const std::string> paths,
                                          const FileOwner& owner) {
  std::lock_guard lock(mutex_);
  forget_ended();
  std::vector<RootFile> files(paths.size());
  const View view = view_of(pid);
  const auto is_path = [](const std::string& path) { return path.size() < PATH_MAX; };
  for (std::size_t from = 0; from < paths.size();) {
    // Paths of one place are requested together.
    const Place place = place_of_path(view, paths[from]);
    const std::size_t first = from++;
    if (!is_path(paths[first])) continue;
    while (from < paths.size() && is_path(paths[from]) && place_of_path(view, paths[from]).name == place.name) ++from;
    const std::span<const std::string> asked = paths.subspan(first, from - first);
    Result<std::vector<RootFile>> found =
        ask<std::vector<RootFile>>(place, [&](OpenHelper& helper) { return helper.open_in_root(pid, asked, owner); });
    if (found) std::move(found->begin(), found->end(), files.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return files;
}

template <typename Answer>
Result<Answer> GuardedOpener::ask(const Place& place, const std::function<Result<Answer>(OpenHelper&)>& question) {
  if (std::optional<Error> refused = refusal(place)) return *refused;
  // A helper that was killed, by the OOM killer for example, says nothing about the file: try another one.
  for (int attempt = 1;; ++attempt) {
    const bool is_new = !helper_;
    if (is_new) {
      Result<OpenHelper> started = OpenHelper::start(options_.program, options_.proc, cancel_.get());
      if (!started) return std::move(started).error();
      helper_ = std::move(started).value();
    }
    helper_->set_limit(place.is_local ? kLocalLimits * options_.limit_ns : options_.limit_ns);
    const MonotonicTime begun = clock_.monotonic();
    Result<Answer> answer = question(*helper_);
    const OpenHelper::State state = helper_->state();
    if (state == OpenHelper::State::kReady) {
      cpu_ns_ = ended_cpu_ns_ + helper_->cpu_ns();
      const MonotonicTime now = clock_.monotonic();
      const std::int64_t took_ns = now.ns - begun.ns;
      // The helper's start time is not the place's fault.
      if (!is_new && !place.is_local && took_ns >= options_.limit_ns / kSlowParts) {
        slow_.push_back({place.name, MonotonicTime{now.ns + kRests * took_ns}});
      }
      return answer;
    }
    ended_cpu_ns_ = cpu_ns_;
    if (state == OpenHelper::State::kHangs) {
      leave_hung(place);
      return hangs(place.name);
    }
    ended_.push_back(std::move(*helper_));
    helper_.reset();
    if (state == OpenHelper::State::kCancelled || attempt == kMostAttempts) return answer;
  }
}

std::optional<Error> GuardedOpener::refusal(const Place& place) const {
  if (stopped_) return Error("flamed is ending", ECANCELED);
  const auto is_there = [&](const Hung& hung) { return hung.place.name == place.name; };
  if (std::any_of(hung_.begin(), hung_.end(), is_there)) return hangs(place.name);
  if (std::any_of(slow_.begin(), slow_.end(), [&](const Slow& slow) { return slow.place == place.name; })) {
    return Error("a file system answers slowly (" + place.name + ")", ETIMEDOUT);
  }
  // Files on a disk are opened even if other places hang.
  const std::size_t most = place.is_local ? 2 * kMostHung : kMostHung;
  if (hung_count_ >= most) return Error("too many file systems do not answer", ETIMEDOUT);
  const auto of_user = std::count_if(
      hung_.begin(), hung_.end(), [&](const Hung& hung) { return !hung.quiet_until && hung.place.user == place.user; });
  if (!place.is_local && !place.user.empty() && static_cast<std::size_t>(of_user) >= kMostOfOneUser) {
    return Error("too many file systems of " + place.user + " do not answer", ETIMEDOUT);
  }
  return std::nullopt;
}

void GuardedOpener::leave_hung(const Place& place) {
  ++timeouts_;
  hung_.push_back({std::move(*helper_), place});
  helper_.reset();
  ++hung_count_;
}

void GuardedOpener::forget_ended() {
  std::erase_if(ended_, [](OpenHelper& helper) { return helper.reap(); });
  if (hung_.empty() && slow_.empty()) return;
  const MonotonicTime now = clock_.monotonic();
  std::erase_if(slow_, [&](const Slow& slow) { return slow.until <= now; });
  for (Hung& hung : hung_) {
    if (hung.quiet_until || !hung.helper.reap()) continue;
    hung.quiet_until = hung.place.is_local ? now : MonotonicTime{now.ns + options_.quiet_ns};
    --hung_count_;
  }
  std::erase_if(hung_, [&](const Hung& hung) { return hung.quiet_until && *hung.quiet_until <= now; });
}

GuardedOpener::Place GuardedOpener::place_of_mapping(const OpenRequest& request) const {
  const std::string user = user_of(request.pid);
  const std::string device =
      device_name(std::to_string(request.file.device_major) + ":" + std::to_string(request.file.device_minor));
  const Place local{"files of " + (user.empty() ? "processes that have ended" : user), user, true};
  for (const std::int32_t pid : {request.pid, kHost}) {
    const Result<std::string> mounts = mounts_of(pid);
    const std::string_view type = mounts ? file_system_of(*mounts, request.file) : std::string_view();
    if (!type.empty()) return may_hang(type) ? Place{device, user} : local;
  }
  // Devices with a major number are disks. Some file systems show other numbers in mappings than in mounts, or are not
  // mounted any more.
  return request.file.device_major == 0 ? Place{device, user} : local;
}

GuardedOpener::View GuardedOpener::view_of(std::int32_t pid) const {
  View view;
  if (pid != kHost) view.user = user_of(pid);
  Result<std::string> mounts = mounts_of(view.user.empty() ? kHost : pid);
  if (mounts) view.mounts = std::move(mounts).value();
  return view;
}

GuardedOpener::Place GuardedOpener::place_of_path(const View& view, std::string_view path) {
  if (const std::optional<DoubtfulMount> mount = may_hang_on_the_way(view.mounts, path)) {
    return {device_name(mount->device), view.user};
  }
  if (!view.user.empty()) return {"paths of " + view.user, view.user};
  // The process is gone, so its user can't have placed links there any more: the place is the folder, which others use,
  // too.
  return {"folder " + std::string(path.substr(0, path.find_last_of('/'))), {}};
}

std::string GuardedOpener::user_of(std::int32_t pid) const {
  const Result<std::string> text = read_file(proc_path(options_.proc, pid, "status"), kStatusLimitBytes);
  const std::optional<ProcessStatus> status = text ? parse_process_status(*text) : std::nullopt;
  return status ? "user " + std::to_string(status->uid.real) : std::string();
}

Result<std::string> GuardedOpener::mounts_of(std::int32_t pid) const {
  return read_file(pid == kHost ? options_.proc + "/self/mountinfo" : proc_path(options_.proc, pid, "mountinfo"),
                   kMountInfoLimitBytes);
}

}  // namespace flamed::symbolizer
