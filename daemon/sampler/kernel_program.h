// SPDX-License-Identifier: Apache-2.0
//
// KernelProgram: bpf/sampler.bpf.c loaded into the kernel, with its maps. libbpf stays inside kernel_program.cc.
//
// Belongs to the reader thread, except where a function says otherwise.
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
/// The program on one timer: from its making to its end the timer's ticks become samples.
using Attachment = Handle<bpf_link*, detach>;

class KernelProgram {
 public:
  /// How the program is made.
  struct Variant {
    bool use_unwind_tables = true;
    bool read_by_type = false;  ///< kernel memory by checked loads instead of the helper that lockdown takes away
  };

  /// With maps for unwind tables where they are wanted and the kernel makes them, else without: one step down. Where
  /// kernel memory can't be read by the helper, it is by type. Until load_walk() was called stacks are walked by frame
  /// pointers.
  static Result<KernelProgram> load(bool use_unwind_tables);
  /// This one or none.
  static Result<KernelProgram> load_variant(const Variant& variant);
  KernelProgram(KernelProgram&&) noexcept;
  ~KernelProgram();

  /// From now on the program puts its samples of these CPUs into these rings, each of which stays the caller's.
  Status give_rings(std::span<const SampleRing> rings);
  /// `timer` stays the caller's and is enabled.
  Result<Attachment> attach(int cpu, const Fd& timer);

  /// What samples stand for from now on. No timer may run meanwhile.
  void set_period(std::int64_t period_ns);

  /// Readable when the program has met something that its unwind tables do not know, or a ring is half full.
  [[nodiscard]] int notices_fd() const;
  void consume_notices();

  // -- Any thread ----------------------------------------------------------------------------------------------------

  /// The program's own counters, over all CPUs. Costs no system call.
  [[nodiscard]] SampleCounts counts() const;
  /// Of one CPU, which must be a possible one.
  [[nodiscard]] SampleCounts counts_of(int cpu) const;
  /// Loads the program that walks stacks by unwind tables: what the kernel's verifier takes for it is most of what a
  /// start takes. Once.
  Status load_walk();
  /// Loads the program that walks kernel stacks by the kernel's own tables, if these were found. Until then, and
  /// without it, the kernel walks them. Once.
  Status load_kernel_walk(const Result<flamed_kernel_orc>& orc);
  /// Why it does not; empty when it does.
  [[nodiscard]] std::string why_no_kernel_walk() const;
  /// Empty without tables.
  [[nodiscard]] std::optional<UnwindMapFds> unwind_maps() const;
  /// Are stacks walked by unwind tables now?
  [[nodiscard]] bool walks_by_tables() const;
  /// Why they are not; empty when they are.
  [[nodiscard]] std::string why_no_tables() const;
  [[nodiscard]] bool reads_by_type() const;
  /// To ask the kernel for the program's run time.
  [[nodiscard]] int fd() const;

 private:
  struct Loaded;
  /// `is_fallback`: after another one was refused and reported.
  static Result<KernelProgram> make(const Variant& variant, bool is_fallback);
  explicit KernelProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
