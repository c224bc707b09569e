// SPDX-License-Identifier: Apache-2.0
//
// RuntimeModules: the mapped files that are managed runtimes, and their numbers in the kernel program. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/identity.h"
#include "base/result.h"
#include "bpf/linked_layout.h"
#include "daemon/unwind/known_programs.h"
#include "runtimes/frame_slots.h"
#include "runtimes/runtime_kind.h"
#include "symbolizer/model/file_key.h"
#include "symbolizer/model/runtime_module.h"
#include "symbolizer/process/mapping_set.h"

namespace flamed::daemon {

using RuntimeModulePtr = std::shared_ptr<const symbolizer::RuntimeModule>;

class RuntimeModules {
 public:
  /// What the kernel program has to know.
  class Program {
   public:
    virtual ~Program() = default;
    virtual Status put_layout(std::uint32_t number, const flamed_linked_layout& layout) = 0;
    virtual Status put_layout(std::uint32_t number, const flamed_slot_layout& layout) = 0;
  };
  /// Both must outlive it. Runtimes of other `kinds` are left alone.
  RuntimeModules(Program& program, KnownPrograms& programs, runtimes::RuntimeKinds kinds)
      : program_(program), programs_(programs), kinds_(kinds) {}

  /// May the file be such a runtime, by its name?
  [[nodiscard]] bool may_have_runtime(std::string_view path) const;

  /// Has the file been looked at? Files that are none are forgotten as soon as there are many.
  [[nodiscard]] bool is_known(ModuleId module) const;
  /// What was found in the file.
  void add(ModuleId module, std::string path, const symbolizer::FileKey& file,
           const Result<std::optional<symbolizer::RuntimeModule>>& found);

  /// Enters how frames of a JVM's interpreter are read: their number in the kernel program. 0: there is no room.
  [[nodiscard]] std::uint32_t enter_interpreter(const runtimes::FrameSlots& slots);

  /// A runtime in a process.
  struct Loaded {
    ModuleId module;
    RuntimeModulePtr runtime;
    std::uint32_t layout = 0;  ///< its number in the kernel program, see flamed_process.runtime
    std::uint64_t base = 0;    ///< what was added to the module's addresses
  };
  /// Empty: the process has none that can be read.
  [[nodiscard]] std::optional<Loaded> find(const symbolizer::MappingSet& maps) const;
  /// Changes whenever find() may find more. No lock.
  [[nodiscard]] std::uint64_t edition() const { return edition_; }

  /// Functions in processes of this module could not be read, for this reason.
  void note_failure(ModuleId module, std::string why);
  /// A process with the module was sampled and has names.
  void note_success(ModuleId module);

  struct Fact {
    std::string path;
    std::string version;       ///< "Python 3.13.5"; empty: not known
    std::string how;           ///< how its frames are found; empty: they are not
    std::string missing;       ///< what can't be read, and why; empty: nothing
    bool is_by_slots = false;  ///< its frames are read by frame pointers, see bpf/walk/frame_slots.h
  };
  [[nodiscard]] std::vector<Fact> facts() const;

 private:
  struct Known {
    std::string path;
    RuntimeModulePtr runtime;  ///< null: none, or none that can be read
    std::uint32_t layout = 0;
    std::string problem;
  };

  template <typename Frames>
  std::string enter(Known& known, const symbolizer::FileKey& file, const Frames& frames);

  Program& program_;
  KnownPrograms& programs_;
  const runtimes::RuntimeKinds kinds_;
  std::atomic<std::uint64_t> edition_ = 0;
  mutable std::mutex mutex_;  ///< guards the members below
  std::unordered_map<ModuleId, Known> known_;
  std::uint32_t layouts_ = 0;
  std::vector<std::pair<runtimes::FrameSlots, std::uint32_t>> interpreters_;  ///< and their numbers
};

}  // namespace flamed::daemon
