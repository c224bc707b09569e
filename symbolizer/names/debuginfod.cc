// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debuginfod.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "base/handle.h"
#include "base/thread.h"

namespace flamed::symbolizer {

Debuginfod::Debuginfod(Fetch fetch, const Clock& clock, Options options)
    : fetch_(std::move(fetch)),
      clock_(clock),
      options_(options),
      thread_(start_thread("debuginfod", [this](const std::stop_token& stop) { run(stop); })) {}

RemoteDebugFiles::Answer Debuginfod::find(const std::string& build_id) {
  std::lock_guard lock(mutex_);
  if (const auto known = known_.find(build_id); known != known_.end()) {
    if (known->second.waiting) return {Fd(), true};
    if (known->second.file) {
      Answer answer{std::move(known->second.file), false};
      known_.erase(known);
      return answer;
    }
    if (clock_.monotonic().ns - known->second.failed_at.ns < options_.ask_again_after_ns) return {};
    known_.erase(known);
  }
  if (waiting_.size() >= options_.max_waiting) return {};
  if (known_.size() >= options_.max_known) {
    for (auto it = known_.begin(); it != known_.end();) it = it->second.waiting ? std::next(it) : known_.erase(it);
  }
  known_.emplace(build_id, Known{});
  waiting_.push_back(build_id);
  changed_.notify_one();
  return {Fd(), true};
}

void Debuginfod::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
    const std::string build_id = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Result<Fd> file = fetch_(build_id, stop);
    lock.lock();
    Known& known = known_[build_id];
    known.waiting = false;
    known.failed_at = clock_.monotonic();
    if (file) {
      known.file = std::move(file).value();
      ++stats_.fetched;
    } else {
      ++stats_.failed;
    }
  }
}

Debuginfod::Stats Debuginfod::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.waiting = waiting_.size();
  return stats;
}

namespace {

/// The used part of libdebuginfod (elfutils/debuginfod.h). Loaded at run time, since it brings an HTTP client into the
/// daemon, and only if configured.
class Library {
 public:
  using Client = void;

  static Result<std::shared_ptr<const Library>> load() {
    auto library = std::make_shared<Library>();
    library->handle_ = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library->handle_ == nullptr) {
      return Error("cannot load libdebuginfod.so.1 (Debian: libdebuginfod1): " + std::string(::dlerror()));
    }
    if (!library->look_up("debuginfod_begin", library->begin) || !library->look_up("debuginfod_end", library->end) ||
        !library->look_up("debuginfod_find_debuginfo", library->find_debuginfo) ||
        !library->look_up("debuginfod_set_progressfn", library->set_progress) ||
        !library->look_up("debuginfod_set_user_data", library->set_user_data) ||
        !library->look_up("debuginfod_get_user_data", library->get_user_data)) {
      return Error("libdebuginfod.so.1 is too old: it lacks a function that flamed needs");
    }
    return std::shared_ptr<const Library>(std::move(library));
  }

  Client* (*begin)() = nullptr;
  void (*end)(Client*) = nullptr;
  int (*find_debuginfo)(Client*, const unsigned char* build_id, int bytes, char** path) = nullptr;
  void (*set_progress)(Client*, int (*)(Client*, long, long)) = nullptr;
  void (*set_user_data)(Client*, void*) = nullptr;
  void* (*get_user_data)(Client*) = nullptr;

 private:
  template <typename Function>
  bool look_up(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    return function != nullptr;
  }

  void* handle_ = nullptr;  ///< never closed: a library with its own threads and exit handlers can't be unloaded
};

/// The loaded library; its progress function only gets the client.
const Library* loaded_library = nullptr;

/// Called by the library periodically; anything but 0 ends the transfer.
int should_stop(Library::Client* client, long /*done*/, long /*total*/) {
  const auto* stop = static_cast<const std::stop_token*>(loaded_library->get_user_data(client));
  return stop != nullptr && stop->stop_requested() ? 1 : 0;
}

Result<Fd> fetch_by(const Library& library, const std::string& build_id, const std::stop_token& stop) {
  const std::unique_ptr<Library::Client, void (*)(Library::Client*)> client(library.begin(), library.end);
  if (client == nullptr) return Error("libdebuginfod can't start");
  library.set_user_data(client.get(), const_cast<std::stop_token*>(&stop));
  library.set_progress(client.get(), should_stop);
  // A length of 0: the build-id is text in hex.
  const int fd =
      library.find_debuginfo(client.get(), reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, nullptr);
  if (fd < 0) return Error::from_errno("debuginfod " + build_id, -fd);
  return Fd(fd);
}

}  // namespace

Result<Debuginfod::Fetch> load_libdebuginfod(const std::string& urls, const std::string& cache_folder) {
  ::setenv("DEBUGINFOD_URLS", urls.c_str(), 1);                // NOLINT(concurrency-mt-unsafe)
  ::setenv("DEBUGINFOD_CACHE_PATH", cache_folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  Result<std::shared_ptr<const Library>> library = Library::load();
  if (!library) return std::move(library).error();
  loaded_library = library->get();
  return Debuginfod::Fetch(
      [library = std::move(library).value()](const std::string& build_id, const std::stop_token& stop) {
        return fetch_by(*library, build_id, stop);
      });
}

}  // namespace flamed::symbolizer
