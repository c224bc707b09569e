// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/module_loader.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/heap.h"
#include "base/result.h"
#include "symbolizer/model/file_identity.h"
#include "symbolizer/model/jit_file.h"
#include "symbolizer/model/module.h"
#include "symbolizer/opener/jit_file_opener.h"
#include "symbolizer/reader/module_rows.h"
#include "unwinder/row.h"

namespace flamed::daemon {
namespace {

/// Without a worker, requests without rows are served at this pace.
constexpr std::chrono::milliseconds kNoReaderPause{50};
constexpr std::size_t kManyRows = 100'000;

void publish_vdso(UnwindPublisher& unwind) {
  const Result<unwinder::UnwindRows> rows = symbolizer::read_vdso_rows();
  if (!rows) {
    spdlog::warn("stacks through the vdso will be incomplete: {}", rows.error().message());
    return;
  }
  static_cast<void>(unwind.publish_rows(kVdsoModule, *rows));
}

}  // namespace

void ModuleLoader::run(const std::stop_token& stop) {
  if (unwind() != nullptr) publish_vdso(*unwind());
  while (!stop.stop_requested()) {
    const std::optional<symbolizer::OpenRequest> request = parts_.modules.next_request(stop);
    if (!request) return;
    if (stop.stop_requested()) return;  // the rest of the queue is not needed any more
    if (request->jit_owner)
      look_for_jit_files(*request->jit_owner);
    else
      load(*request, stop);
  }
}

/// Null: there are no tables, or the kernel has refused the program that would use them.
UnwindPublisher* ModuleLoader::unwind() const { return parts_.walks.refused_tables() ? nullptr : parts_.unwind; }

void ModuleLoader::load(const symbolizer::OpenRequest& request, const std::stop_token& stop) {
  ModuleId id = request.module;
  const symbolizer::ModulePtr known = parts_.modules.find(id);
  if (known == nullptr || !known->file) {
    Result<Fd> file = parts_.opener.open_module(request);
    if (!file) spdlog::debug("cannot open {}: {}", request.path, file.error().message());
    id = parts_.modules.finish(request, std::move(file));
  }
  if (unwind() == nullptr) return;
  const symbolizer::ModulePtr module = parts_.modules.find(id);
  if (module != nullptr && module->file) look_for_runtime(*module, request.file);
  // Rows of much code wait until walks have met it often enough (UnwindPublisher::should_build()).
  const bool is_worth_it = !request.only_functions && parts_.unwind->is_worth_at_once(request.end - request.start);
  if (module != nullptr && module->file && !is_worth_it) find_functions(*module);
  if (module != nullptr && module->file && is_worth_it && !publish_rows(*module, stop)) {
    std::this_thread::sleep_for(kNoReaderPause);
    parts_.modules.want_again(module->id);
  }
  parts_.unwind->drop_empty_slabs();
}

void ModuleLoader::look_for_runtime(const symbolizer::Module& module, const symbolizer::FileKey& file) {
  RuntimeModules* const runtimes = parts_.runtimes;
  if (runtimes == nullptr || !runtimes->may_have_runtime(module.path) || runtimes->is_known(module.id)) return;
  const Result<std::optional<symbolizer::RuntimeModule>> found = parts_.reader.find_runtime(module.file.get());
  if (!found && found.error().code() == EAGAIN) return;  // the next request for the module tries again
  runtimes->add(module.id, module.path, file, found);
}

/// The rows of single functions that late walks need.
void ModuleLoader::find_functions(const symbolizer::Module& module) {
  const std::vector<std::uint64_t> wanted = parts_.unwind->take_wanted_functions(module.id);
  if (wanted.empty() || !parts_.budget.may_work_in_background()) return;
  const Result<std::vector<unwinder::UnwindRows>> rows = parts_.reader.read_function_rows(module.file.get(), wanted);
  if (rows)
    parts_.unwind->add_functions(module.id, wanted, *rows);
  else
    spdlog::debug("no unwind rows for functions of {}: {}", module.path, rows.error().message());
}

/// Those that were kept, or newly built ones, which are kept from now on.
Result<symbolizer::SourcedRows> ModuleLoader::rows_of(const Fd& file) {
  const SystemClock clock;
  const MonotonicTime start = clock.monotonic();
  const auto identity = parts_.row_cache == nullptr ? std::nullopt : symbolizer::identity_of(file.get());
  const Fd kept = identity ? parts_.row_cache->find(*identity) : Fd();
  Result<symbolizer::SourcedRows> rows = parts_.reader.read_unwind_rows(file.get(), kept.get());
  if (rows && rows->was_kept) {
    parts_.unwind->count_reuse();
    return rows;
  }
  if (rows || rows.error().code() != EAGAIN) parts_.unwind->count_build(clock.monotonic().ns - start.ns);
  // A file that has changed meanwhile may have rows of both versions.
  if (rows && identity && symbolizer::identity_of(file.get()) == identity) parts_.row_cache->keep(*identity, *rows);
  return rows;
}

/// False: the ELF worker was not available; try again.
bool ModuleLoader::publish_rows(const symbolizer::Module& module, const std::stop_token& stop) {
  if (parts_.unwind->is_ready(module.id)) return true;
  // The next sample in the module requests it again.
  if (!parts_.budget.may_work_in_background()) return true;
  Result<symbolizer::SourcedRows> read = rows_of(module.file);
  if (!read && read.error().code() == EAGAIN) return false;
  // Other failures may be those of the helper, not of the file.
  if (!read && read.error().code() != ENOEXEC && parts_.unwind->may_try_again(module.id)) {
    spdlog::info("no unwind rows for {} yet: {}", module.path, read.error().message());
    return true;
  }
  if (!read) {
    spdlog::info("no unwind rows for {}: {}; its code is walked by frame pointers", module.path,
                 read.error().message());
  }
  unwinder::UnwindRows rows = read ? std::move(read->rows) : unwinder::UnwindRows{};
  while (!stop.stop_requested() && parts_.unwind->publish_rows(module.id, rows) == UnwindPublisher::Outcome::kWait) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(UnwindPublisher::kGraceNs));
  }
  if (rows.rows.size() >= kManyRows) {
    // Frees megabytes that are not needed for a long time.
    rows = {};
    give_back_freed_memory();
  }
  return true;
}

void ModuleLoader::look_for_jit_files(const ProcessId& owner) {
  symbolizer::ModuleTable& modules = parts_.modules;
  const symbolizer::JitFilesPtr known = modules.jit_files(owner);
  symbolizer::JitFiles found = symbolizer::with_known(parts_.opener.find_jit_files(owner), known.get());
  modules.finish_jit(owner, std::move(found));
}

}  // namespace flamed::daemon
