// SPDX-License-Identifier: Apache-2.0
//
// KernelProgram: bpf/sampler/sampler.bpf.c loaded into the kernel, with its maps, and WalkPrograms, which it calls to
// walk stacks. Only kernel_program.cc uses libbpf.
//
// Belongs to the reader thread, except functions marked otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "bpf/kernel_tables.h"
#include "bpf/linked_layout.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/sample_ring.h"
#include "daemon/unwind/bpf_unwind_maps.h"

struct bpf_link;
struct sampler;  ///< bpftool's: the object file, opened or loaded

namespace flamed::daemon {

void detach(bpf_link* link);
/// The program attached to one timer: while it exists, the timer's ticks become samples.
using Attachment = Handle<bpf_link*, detach>;

/// The programs that walk stacks. They are loaded while samples are already taken: verifying them takes most of the
/// time of a start. Any thread.
class WalkPrograms {
 public:
  /// `first` calls them and has the maps; it must outlive them.
  WalkPrograms(::sampler& first, bool reads_by_type, std::string why_no_tables)
      : first_(first), reads_by_type_(reads_by_type), why_no_tables_(std::move(why_no_tables)) {}

  /// Loads the one that walks user stacks by unwind tables. Until then they are walked by frame pointers. Call it once,
  /// and only if there are maps for tables.
  Status load_user_walk();
  /// Loads the one that walks the frames of managed runtimes. Call it once, after that, and only in a variant for it.
  Status load_linked_walk();
  /// Loads the one that walks kernel stacks by the kernel's own tables, if these were found. Until then, and without
  /// it, the kernel walks them, which takes longer. Call it once.
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc);

  /// Are user stacks walked by unwind tables now? No lock.
  [[nodiscard]] bool walks_by_tables() const;
  /// Has the kernel refused the program that would do so? No lock.
  [[nodiscard]] bool refused_tables() const;
  /// Why not; empty if they are.
  [[nodiscard]] std::string why_no_tables() const;
  /// Why the frames of managed runtimes are not walked; empty if they are.
  [[nodiscard]] std::string why_no_runtimes() const;
  /// Likewise of those that are found by frame pointers.
  [[nodiscard]] std::string why_no_slots() const;
  /// Why the kernel itself walks kernel stacks; empty if our program does.
  [[nodiscard]] std::string why_no_kernel_walk() const;

 private:
  ::sampler& first_;
  const bool reads_by_type_;
  mutable std::mutex mutex_;
  // Guarded by it:
  std::string why_no_tables_;
  std::string why_no_kernel_walk_ = "the program for it is being loaded";
  std::string why_no_runtimes_ = "the program for it is being loaded";
  std::string why_no_slots_ = "the program for it is being loaded";
  Fd linked_walk_{}, linked_end_{}, code_copies_{}, slot_walk_{};
  Fd user_walk_{};  ///< also in the map of programs
  Fd kernel_walk_{};
};

class KernelProgram {
 public:
  /// A variant of the program.
  struct Variant {
    bool use_unwind_tables = true;
    bool read_by_type = false;     ///< kernel memory by checked loads instead of the helper that lockdown forbids
    bool use_stack_slices = true;  ///< with tables
    bool use_runtimes = false;     ///< likewise: walks the frames of managed runtimes
  };

  /// With maps for unwind tables if `use_unwind_tables` and the kernel creates them, else without. Reads kernel memory
  /// by type if the helper is forbidden. walks() says how stacks are walked.
  static Result<KernelProgram> load(bool use_unwind_tables, bool use_stack_slices, bool use_runtimes = false);
  /// This one or none.
  static Result<KernelProgram> load_variant(const Variant& variant);
  KernelProgram(KernelProgram&&) noexcept;
  ~KernelProgram();

  /// From now on the program writes samples of these CPUs into these rings; the caller keeps them.
  Status give_rings(std::span<const SampleRing> rings);
  /// The caller keeps `timer`, which is enabled.
  Result<Attachment> attach(int cpu, const Fd& timer);

  /// The period of samples from now on. No timer may run meanwhile.
  void set_period(std::int64_t period_ns);

  /// Readable when the program missed an entry in its unwind tables, or a ring is half full.
  [[nodiscard]] int notices_fd() const;
  void consume_notices();
  /// Appends the copies of code since the last call.
  void take_code_copies(std::vector<flamed_code_copy>& copies);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  /// The program's own counters, over all CPUs. Makes no system call.
  [[nodiscard]] SampleCounts counts() const;
  /// Counters of one CPU, which must be a possible one.
  [[nodiscard]] SampleCounts counts_of(int cpu) const;
  [[nodiscard]] WalkPrograms& walks();
  [[nodiscard]] const WalkPrograms& walks() const;
  /// The maps of the unwind tables; empty without tables.
  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const;
  /// Does lockdown forbid the program its usual way of reading kernel memory?
  [[nodiscard]] bool reads_by_type() const;
  /// For reading the program's run time.
  [[nodiscard]] int fd() const;

 private:
  struct Loaded;
  /// `is_fallback`: another variant was refused and reported before.
  static Result<KernelProgram> make(const Variant& variant, bool is_fallback, const std::string& why_no_tables);
  explicit KernelProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
