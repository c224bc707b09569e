// SPDX-License-Identifier: Apache-2.0
//
// ModuleTable: every module that a mapping or a stored stack names, and the open files behind them.
//
// Ingest enters modules and lets them go; the `modules` thread opens their files; anybody may look one up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/result.h"
#include "symbolizer/file_key.h"
#include "symbolizer/module.h"

namespace flamed::symbolizer {

/// Where a module's file can be found: a mapping of it in a process that was alive a moment ago.
struct OpenRequest {
  ModuleId module;
  FileKey file;
  std::string path;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;  ///< likely to be in the same mount namespace when the process is gone already
  std::uint64_t start = 0, end = 0;
  /// Given: what is asked for are the files that name this process's JIT code, and nothing above counts.
  std::optional<ProcessId> jit_owner{};
};

class ModuleTable final : public Modules {
 public:
  /// At most `open_file_limit` files are held open at once.
  ModuleTable(std::size_t open_file_limit, const Clock& clock);

  // -- Ingest ---------------------------------------------------------------------------------------------------------

  /// The module of a mapped file. The same file at another path is the same module, and until it is open the newest
  /// path counts; but under another name it is another module. For a module's name is shown to everybody who has it
  /// mapped, and a process must neither learn by what name others have the file in their mount namespace nor choose it
  /// for them.
  ModuleId file(const FileKey& key, std::string_view path);

  /// Memory of `owner` that is mapped as code but has no file behind it.
  ModuleId anonymous(const ProcessId& owner);
  /// Addresses of `owner` that no known mapping covers.
  ModuleId unmapped(const ProcessId& owner);

  /// A sample was seen in the module: its file is needed. Queues the opening once; after a failure again, with growing
  /// distance, as other processes show where it may be found. A no-op for modules without file.
  void want(const OpenRequest& request);

  /// A sample was seen in the owner's memory without a file: what names its code is needed. Queues the search; again,
  /// with growing distance, for as long as there is nothing, and now and then to see whether there is something newer.
  /// `new_code`: none was seen there before.
  void want_jit(const ProcessId& owner, bool new_code);

  /// Queues a module whose file is open already for the `modules` thread once more.
  void want_again(ModuleId module);

  /// Forgets every module that is not in `live`, which is sorted.
  void retain(std::span<const ModuleId> live);
  /// Forgets the files that nobody ever wanted and that are not in `mapped`, which is sorted: programs that came and
  /// went between two samples.
  void forget_unwanted(std::span<const ModuleId> mapped);

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  /// Waits for the next file to open. Empty when `stop` is requested.
  std::optional<OpenRequest> next_request(const std::stop_token& stop);
  [[nodiscard]] bool has_request() const { return requests_.size() != 0; }
  void finish(const OpenRequest& request, Result<Fd> opened);
  /// What is open of the files that name the owner's JIT code; null: not looked for yet.
  [[nodiscard]] JitFilesPtr jit_files(const ProcessId& owner) const;
  void finish_jit(const ProcessId& owner, JitFiles found);
  /// Was code seen, since the last clear_new_jit_code(), where none was before?
  [[nodiscard]] bool has_new_jit_code(const ProcessId& owner) const;
  void clear_new_jit_code(const ProcessId& owner);

  // -- The thread that asks JVMs --------------------------------------------------------------------------------------

  /// The owner's JVM was asked for its perf map. `problem` is why it gave none; when empty, the map is looked for now.
  void note_jvm(const ProcessId& owner, std::string problem);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  [[nodiscard]] ModulePtr find(ModuleId id) const override;
  [[nodiscard]] std::int32_t process_of(ModuleId id) const override;

  struct Stats {
    std::size_t modules = 0;
    std::size_t open_files = 0;
    std::uint64_t failed_opens = 0;
    std::uint64_t refused_requests = 0;  ///< the queue to the `modules` thread was full
  };
  [[nodiscard]] Stats stats() const;

 private:
  enum class FileState : std::uint8_t { kNotAsked, kQueued, kOpen, kFailed };
  struct Entry {
    ModulePtr module;
    FileKey key;  ///< of files
    FileState state = FileState::kNotAsked;
    bool wanted = false;
    std::int32_t pid = 0;  ///< of the newest request
    unsigned failures = 0;
    MonotonicTime retry_after{};
  };
  /// What names the JIT code of one process; `anonymous_` and `unmapped_` share it.
  struct Jit {
    JitFilesPtr files;
    bool queued = false;
    unsigned failures = 0;
    MonotonicTime look_after{};
    bool new_code = false;
    std::string jvm_problem;
  };

  ModuleId enter(ModuleKind kind, std::string path, const ProcessId& owner, const FileKey& key);
  void forget(const Entry& entry);
  void queue_jit(const ProcessId& owner, Jit& jit);
  void replace_jit(Jit& jit, JitFilesPtr files);
  ModuleId per_process(std::unordered_map<ProcessId, ModuleId>& ids, const ProcessId& owner, const char* path);

  const std::size_t open_file_limit_;
  const Clock& clock_;
  BoundedQueue<OpenRequest> requests_;

  mutable std::shared_mutex mutex_;  ///< everything below
  std::unordered_map<ModuleId, Entry> entries_;
  std::unordered_map<FileKey, std::map<std::string, ModuleId, std::less<>>> by_file_;  ///< by the path's last part
  std::unordered_map<ProcessId, ModuleId> anonymous_;
  std::unordered_map<ProcessId, ModuleId> unmapped_;
  std::unordered_map<ProcessId, Jit> jit_;
  std::uint32_t next_id_ = kFirstFreeModule.value;
  std::size_t open_files_ = 0;
  std::uint64_t failed_opens_ = 0;
};

}  // namespace flamed::symbolizer
