// SPDX-License-Identifier: Apache-2.0
//
// ModuleTable: every module that a mapping or a stored stack names, and the open files behind them.
//
// Ingest enters modules and lets them go; the `modules` thread opens their files; the `names` thread closes those that
// nobody has mapped any more, so that file systems can be unmounted and what is deleted takes no room; anybody may look
// one up.
//
// There is room for so many open files and for so many bytes of names. When it runs out, whoever holds most of it loses
// what he has held longest.
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
#include "symbolizer/model/file_key.h"
#include "symbolizer/model/module.h"

namespace flamed::symbolizer {

/// A share that is no single user's, such as that of processes with several.
inline constexpr std::uint32_t kNobodys = 0xffff'ffff;

/// Where a module's file can be found: a mapping of it in a process that was alive a moment ago.
struct OpenRequest {
  ModuleId module;
  FileKey file;
  std::string path;
  std::int32_t pid = 0;
  std::int32_t parent_pid = 0;  ///< likely to be in the same mount namespace when the process is gone already
  std::uint64_t start = 0, end = 0;
  std::uint32_t user = kNobodys;  ///< for whose share of the open files it counts
  /// Given: what is asked for are the files that name this process's JIT code, and nothing above counts.
  std::optional<ProcessId> jit_owner{};
};

class ModuleTable final : public Modules {
 public:
  /// At most `open_file_limit` files are held open at once, and `names_budget_bytes` of names of closed ones.
  ModuleTable(std::size_t open_file_limit, const Clock& clock,
              std::size_t names_budget_bytes = kDefaultNamesBudgetBytes);
  static constexpr std::size_t kDefaultNamesBudgetBytes = std::size_t{32} << 20;

  // -- Ingest ---------------------------------------------------------------------------------------------------------

  /// The module of a mapped file. The same file at another path is the same module, and until it is open the newest
  /// path counts; but under another name it is another module. For a module's name is shown to everybody who has it
  /// mapped, and a process must neither learn by what name others have the file in their mount namespace nor choose it
  /// for them.
  struct MappedFile {
    ModuleId module;
    bool is_closed = false;  ///< it has to be opened again to know whether it is still the file that it was
  };
  MappedFile file(const FileKey& key, std::string_view path);

  /// Memory of `owner` that is mapped as code but has no file behind it.
  ModuleId anonymous(const ProcessId& owner);
  /// Addresses of `owner` that no known mapping covers.
  ModuleId unmapped(const ProcessId& owner);

  /// A sample was seen in the module: its file is needed. Queues the opening once; after a failure again, with growing
  /// distance, as other processes show where it may be found. A no-op for modules without file.
  struct Wanted {
    /// Another one, where the file that was closed has changed since: mappings of now are that one's.
    ModuleId module;
    bool is_in_doubt = false;  ///< it was closed, and is not open again to see
  };
  Wanted want(const OpenRequest& request);

  /// A sample was seen in the owner's memory without a file: what names its code is needed. Queues the search; again,
  /// with growing distance, for as long as there is nothing, and now and then to see whether there is something newer.
  /// `new_code`: none was seen there before.
  /// `user`: see OpenRequest.
  void want_jit(const ProcessId& owner, bool new_code, std::uint32_t user = kNobodys);

  /// Queues a module whose file is open already for the `modules` thread once more.
  void want_again(ModuleId module);

  /// Modules that processes have mapped or own, in any order, with repeats. All others are to be closed.
  void note_mapped(std::span<const ModuleId> mapped);

  /// Forgets every module that is not in `live`, which is sorted.
  void retain(std::span<const ModuleId> live);
  /// Forgets the files that nobody ever wanted and that are not in `mapped`, which is sorted: programs that came and
  /// went between two samples.
  void forget_unwanted(std::span<const ModuleId> mapped);

  // -- The `modules` thread ------------------------------------------------------------------------------------------

  /// Waits for the next file to open. Empty when `stop` is requested.
  std::optional<OpenRequest> next_request(const std::stop_token& stop);
  [[nodiscard]] bool has_request() const { return requests_.size() != 0; }
  /// Returns the module whose file it is: another one where it has changed since it was closed.
  ModuleId finish(const OpenRequest& request, Result<Fd> opened);
  /// What is open of the files that name the owner's JIT code; null: not looked for yet.
  [[nodiscard]] JitFilesPtr jit_files(const ProcessId& owner) const;
  void finish_jit(const ProcessId& owner, JitFiles found);
  /// Was code seen, since the last clear_new_jit_code(), where none was before?
  [[nodiscard]] bool has_new_jit_code(const ProcessId& owner) const;
  void clear_new_jit_code(const ProcessId& owner);

  // -- The `names` thread --------------------------------------------------------------------------------------------

  /// Waits until there are open files that nobody has mapped. False when `stop` is requested.
  bool await_abandoned(const std::stop_token& stop) const;
  struct Abandoned {
    ModulePtr module;
    MonotonicTime since;
    KeptNamesPtr names;  ///< from when it was closed before; may be null
  };
  /// Those of them since `until` or longer, the longest first. Modules of processes that have ended are among them.
  [[nodiscard]] std::vector<Abandoned> abandoned(MonotonicTime until) const;
  /// Closes its files. `why`: to people, of addresses that `names` has not. Null: somebody has mapped it meanwhile.
  ModulePtr close(const ModulePtr& module, KeptNamesPtr names, std::string why);

  // -- The thread that asks JVMs --------------------------------------------------------------------------------------

  /// The owner's JVM was asked for its perf map. `problem` is why it gave none; when empty, the map is looked for now.
  void note_jvm(const ProcessId& owner, std::string problem);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  [[nodiscard]] ModulePtr find(ModuleId id) const override;
  [[nodiscard]] std::int32_t process_of(ModuleId id) const override;
  bool reopen(ModuleId id) override;

  struct Stats {
    std::size_t modules = 0;
    std::size_t open_files = 0;
    std::size_t names_bytes = 0;          ///< of these names
    std::uint64_t names_dropped = 0;      ///< modules whose names had to go, for lack of room
    std::uint64_t files_crowded_out = 0;  ///< closed although mapped, for lack of room
    std::uint64_t failed_opens = 0;
    std::uint64_t refused_requests = 0;  ///< the queue to the `modules` thread was full
  };
  [[nodiscard]] Stats stats() const;

 private:
  enum class FileState : std::uint8_t { kNotAsked, kQueued, kOpen, kFailed, kClosed };
  /// By which a file is known not to have changed.
  struct FileVersion {
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };
  static std::optional<FileVersion> version_of(int file);
  struct Entry {
    ModulePtr module;
    FileKey key;  ///< of files
    FileState state = FileState::kNotAsked;
    bool wanted = false;
    std::int32_t pid = 0;           ///< of the newest request
    std::uint32_t user = kNobodys;  ///< of the request that it was opened for
    KeptNamesPtr names{};           ///< once it was closed; also while it is open again
    unsigned failures = 0;
    MonotonicTime retry_after{};
    bool reopened = false;  ///< or to be: nobody has mapped it, its names are wanted
    std::optional<MonotonicTime> abandoned_since{};
    std::optional<FileVersion> closed_version{};  ///< when it was closed last
    ModuleId successor = kNoModule;               ///< what its file has become since
  };
  /// A file by the last part of its path. With a view for the text it is what is looked for.
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
    Entry* entry = nullptr;  ///< in `entries_`, where it stays in its place until it is erased
  };
  static Named<std::string_view> name_of(const FileKey& key, std::string_view path);

  /// What names the JIT code of one process; `anonymous_` and `unmapped_` share it.
  struct Jit {
    JitFilesPtr files;
    bool queued = false;
    unsigned failures = 0;
    MonotonicTime look_after{};
    bool new_code = false;
    std::string jvm_problem;
    std::uint32_t user = kNobodys;
  };
  /// A module's file, or the files that name a process's JIT code.
  using Holding = std::variant<ModuleId, ProcessId>;

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

  mutable std::shared_mutex mutex_;  ///< everything below
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
