// SPDX-License-Identifier: Apache-2.0
//
// KernelProgram: bpf/sampler.bpf.c loaded into the kernel, with its maps. Only kernel_program.cc uses libbpf.
//
// Belongs to the reader thread, except functions marked otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/handle.h"
#include "base/result.h"
#include "bpf/kernel_tables.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/sampler/sample_ring.h"
#include "daemon/unwind/bpf_unwind_maps.h"

struct bpf_link;

namespace flamed::daemon {

void detach(bpf_link* link);
/// The program attached to one timer: while it exists, the timer's ticks become samples.
using Attachment = Handle<bpf_link*, detach>;

class KernelProgram {
 public:
  /// A variant of the program.
  struct Variant {
    bool use_unwind_tables = true;
    bool read_by_type = false;  ///< kernel memory by checked loads instead of the helper that lockdown forbids
  };

  /// With maps for unwind tables if `use_unwind_tables` and the kernel creates them, else without. Reads kernel memory
  /// by type if the helper is forbidden. Stacks are walked by frame pointers until load_walk() was called.
  static Result<KernelProgram> load(bool use_unwind_tables);
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

  // -- Any thread ----------------------------------------------------------------------------------------------------

  /// The program's own counters, over all CPUs. Makes no system call.
  [[nodiscard]] SampleCounts counts() const;
  /// Counters of one CPU, which must be a possible one.
  [[nodiscard]] SampleCounts counts_of(int cpu) const;
  /// Loads the program that walks stacks by unwind tables; verifying it takes most of the time of a start. Call it
  /// once.
  Status load_walk();
  /// Loads the program that walks kernel stacks by the kernel's own tables, if these were found. Until then, and
  /// without it, the kernel walks them. Call it once.
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc);
  /// Why the program does not walk kernel stacks; empty if it does.
  [[nodiscard]] std::string why_no_kernel_walk() const;
  /// Empty without tables.
  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const;
  /// Are stacks walked by unwind tables now?
  [[nodiscard]] bool walks_by_tables() const;
  /// Why not; empty if they are.
  [[nodiscard]] std::string why_no_tables() const;
  [[nodiscard]] bool reads_by_type() const;
  /// For reading the program's run time.
  [[nodiscard]] int fd() const;

 private:
  struct Loaded;
  /// `is_fallback`: another variant was refused and reported before.
  static Result<KernelProgram> make(const Variant& variant, bool is_fallback);
  explicit KernelProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
