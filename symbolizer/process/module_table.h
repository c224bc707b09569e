// SPDX-License-Identifier: Apache-2.0
//
// ModuleTable: every module in a mapping or a stored stack, and their open files.
//
// Ingest adds and removes modules; the `modules` thread opens their files; the `names` thread closes files that no
// process has mapped any more, so that file systems can be unmounted and deleted files freed; any thread may look one
// up.
//
// The number of open files and the bytes of names are limited. At a limit, the user who holds most loses his oldest
// item.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/fair_shares.h"
#include "base/identity.h"
#include "base/keyed_hash.h"
#include "base/result.h"
#include "symbolizer/model/file_identity.h"
#include "symbolizer/model/file_key.h"
#include "symbolizer/model/module.h"

namespace flamed::symbolizer {

/// The share of processes without a single user.
inline constexpr std::uint32_t kNobodys = 0xffff'ffff;

/// Where to find a module's file: a mapping of it in a process that was alive a moment ago.
struct OpenRequest {
  ModuleId module;
  FileKey file;
  std::string path;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;  ///< likely in the same mount namespace, if the process is gone already
  std::uint64_t start = 0, end = 0;
  std::uint32_t user = kNobodys;  ///< the user whose share of open files it counts for
  bool only_functions = false;    ///< not all unwind rows, only those of functions that were asked for
  /// If set: the request is for this process's perf map and jitdump, and the members above are unused.
  std::optional<ProcessId> jit_owner{};
};

class ModuleTable final : public Modules {
 public:
  /// Holds at most `open_file_limit` files open at once, and `names_budget_bytes` of names of closed ones.
  ModuleTable(std::size_t open_file_limit, const Clock& clock,
              std::size_t names_budget_bytes = kDefaultNamesBudgetBytes);
  static constexpr std::size_t kDefaultNamesBudgetBytes = std::size_t{32} << 20;

  // -- Ingest ---------------------------------------------------------------------------------------------------------

  /// The module of a mapped file. The same file in another folder is the same module, and until it is open the newest
  /// path is used; but with another file name it is another module. A module's name is shown to everybody who has it
  /// mapped, and a process must neither learn the file's name in the mount namespaces of others nor choose it for them.
  struct MappedFile {
    ModuleId module;
    bool is_closed = false;  ///< it must be opened again to know whether it is still the same file
  };
  MappedFile file(const FileKey& key, std::string_view path);

  /// Memory of `owner` that is mapped as code without a file.
  ModuleId anonymous(const ProcessId& owner);
  /// Addresses of `owner` that no known mapping covers.
  ModuleId unmapped(const ProcessId& owner);

  /// The module was sampled: its file is needed. Queues the request once; after a failure again, at growing intervals,
  /// as other processes have it mapped. A no-op for modules without a file.
  struct Wanted {
    /// Another module if the closed file has changed since: current mappings belong to that one.
    ModuleId module;
    bool is_in_doubt = false;  ///< it was closed, and is not open again for a check
  };
  Wanted want(const OpenRequest& request);

  /// The owner's memory without a file was sampled: its perf map or jitdump is needed. Queues the search; repeats it at
  /// growing intervals until something is found, and then now and then for something newer. `user`: see OpenRequest.
  void want_jit(const ProcessId& owner, std::uint32_t user = kNobodys);

  /// Queues a module with an open file for the `modules` thread once more.
  void want_again(ModuleId module);
  /// The same, for unwind rows of single functions only.
  void want_functions(ModuleId module);

  /// Sets the modules that processes have mapped or own, in any order, with repeats. All others will be closed.
  void note_mapped(std::span<const ModuleId> mapped);

  /// Forgets every module that is not in `live`, which is sorted.
  void retain(std::span<const ModuleId> live);
  /// Forgets files that were never sampled and are not in `mapped`, which is sorted: programs that ran between two
  /// samples.
  void forget_unwanted(std::span<const ModuleId> mapped);

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  /// Waits for the next file to open. Empty when `stop` is requested.
  std::optional<OpenRequest> next_request(const std::stop_token& stop);
  [[nodiscard]] bool has_request() const { return requests_.size() != 0; }
  /// Returns the file's module: another one if the file has changed since it was closed.
  ModuleId finish(const OpenRequest& request, Result<Fd> opened);
  /// The owner's open perf map and jitdump; null: not looked for yet.
  [[nodiscard]] JitFilesPtr jit_files(const ProcessId& owner) const;
  void finish_jit(const ProcessId& owner, JitFiles found);

  // -- The `names` thread --------------------------------------------------------------------------------------------

  /// Waits until there are open files that no process has mapped. False when `stop` is requested.
  bool await_abandoned(const std::stop_token& stop) const;
  struct Abandoned {
    ModulePtr module;
    MonotonicTime since;
    KeptNamesPtr names;  ///< from an earlier close; may be null
  };
  /// Files unmapped since `until` or longer, the longest first, including modules of ended processes.
  [[nodiscard]] std::vector<Abandoned> abandoned(MonotonicTime until) const;
  /// Closes its files. `why`: the reason shown for addresses that are not in `names`. Null: it was mapped again
  /// meanwhile.
  ModulePtr close(const ModulePtr& module, KeptNamesPtr names, std::string why);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  [[nodiscard]] ModulePtr find(ModuleId id) const override;
  [[nodiscard]] std::int32_t process_of(ModuleId id) const override;
  bool reopen(ModuleId id) override;

  struct Stats {
    std::size_t modules = 0;
    std::size_t open_files = 0;
    std::size_t names_bytes = 0;          ///< of these names
    std::uint64_t names_dropped = 0;      ///< modules whose names were dropped for lack of room
    std::uint64_t files_crowded_out = 0;  ///< closed while mapped, for lack of room
    std::uint64_t failed_opens = 0;
    std::uint64_t refused_requests = 0;  ///< the queue to the `modules` thread was full
  };
  [[nodiscard]] Stats stats() const;

 private:
  enum class FileState : std::uint8_t { kNotAsked, kQueued, kOpen, kFailed, kClosed };
  struct Entry {
    ModulePtr module;
    FileKey key;  ///< of files
    FileState state = FileState::kNotAsked;
    bool wanted = false;
    std::int32_t pid = 0;           ///< of the newest request
    std::uint32_t user = kNobodys;  ///< of the request that opened it
    KeptNamesPtr names{};           ///< from the last close; kept while it is open again
    unsigned failures = 0;
    MonotonicTime retry_after{};
    bool reopened = false;  ///< or requested: no process has mapped it, its names are needed
    std::optional<MonotonicTime> abandoned_since{};
    std::optional<FileVersion> closed_version{};  ///< at the last close
    ModuleId successor = kNoModule;               ///< the module of the changed file
  };
  /// A file by the last part of its path. With a view as text it is a key for look-ups.
  template <typename Text>
  struct Named {
    FileKey file;
    Text name;
    template <typename Other>
    bool operator==(const Named<Other>& other) const {
      return file == other.file && name == other.name;
    }
  };
  using FileName = Named<std::string>;
  struct FileNameHash {
    using is_transparent = void;
    template <typename Text>
    std::size_t operator()(const Named<Text>& named) const {
      return std::hash<FileKey>{}(named.file) ^ KeyedTextHash {}(named.name);
    }
  };
  struct Place {
    ModuleId module;
    Entry* entry = nullptr;  ///< in `entries_`, whose elements don't move
  };
  static Named<std::string_view> name_of(const FileKey& key, std::string_view path);

  /// The perf map and jitdump of one process; `anonymous_` and `unmapped_` share it.
  struct Jit {
    JitFilesPtr files;
    bool queued = false;
    unsigned failures = 0;
    MonotonicTime look_after{};
    std::uint32_t user = kNobodys;
  };
  /// A module's file, or a process's perf map and jitdump.
  using Holding = std::variant<ModuleId, ProcessId>;

  void queue_open(ModuleId module, bool only_functions);
  void set_abandoned(Entry& entry);
  void reset_abandoned(Entry& entry);
  ModuleId enter(ModuleKind kind, std::string path, const ProcessId& owner, const FileKey& key);
  void forget(const Entry& entry);
  void queue_jit(const ProcessId& owner, Jit& jit);
  void replace_jit(const ProcessId& owner, Jit& jit, JitFilesPtr files);
  void show_jit(const ProcessId& owner, const JitFilesPtr& files);
  [[nodiscard]] bool shows_jit(const ProcessId& owner) const;
  [[nodiscard]] bool make_room(std::size_t files, std::uint32_t user);
  void take_from(const Holding& holding, std::uint32_t user);
  ModuleId open_anew(Entry& entry, Fd file, std::uint32_t user);
  void keep_names(Entry& entry, KeptNamesPtr names);
  void drop_names(ModuleId module);
  [[nodiscard]] bool has_files(const Entry& entry) const;
  ModuleId per_process(std::unordered_map<ProcessId, ModuleId>& ids, const ProcessId& owner, const char* path);

  const std::size_t open_file_limit_;
  const std::size_t names_budget_bytes_;
  const Clock& clock_;
  BoundedQueue<OpenRequest> requests_;

  mutable std::shared_mutex mutex_;  ///< guards the members below
  std::unordered_map<ModuleId, Entry> entries_;
  std::unordered_map<FileName, Place, FileNameHash, std::equal_to<>> by_name_;  ///< the newest of each
  std::unordered_map<ProcessId, ModuleId> anonymous_;
  std::unordered_map<ProcessId, ModuleId> unmapped_;
  std::unordered_map<ProcessId, Jit> jit_;
  std::uint32_t next_id_ = kFirstFreeModule.value;
  FairShares<Holding> open_files_;
  FairShares<ModuleId> names_;  ///< in bytes
  std::size_t abandoned_ = 0;   ///< entries with abandoned_since
  std::uint64_t failed_opens_ = 0, names_dropped_ = 0, files_crowded_out_ = 0;
  mutable std::condition_variable_any has_abandoned_;
};

}  // namespace flamed::symbolizer
