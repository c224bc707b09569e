// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/kernel_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/mapped_memory.h"
#include "bpf/events.h"
#include "daemon/machine/locked_memory.h"
#include "daemon/sampler/libbpf_log.h"

// Written by bpftool, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverlength-strings"
// Tests load the objects of other compilers.
#ifndef FLAMED_SAMPLER_SKELETON
#define FLAMED_SAMPLER_SKELETON "bpf/sampler.skel.h"
#endif
#include FLAMED_SAMPLER_SKELETON
#pragma GCC diagnostic pop

namespace flamed::daemon {
namespace {

using Skeleton = Handle<::sampler*, ::sampler__destroy>;
using NoticeRing = Handle<ring_buffer*, ::ring_buffer__free>;

/// In the map of programs, as sampler.bpf.c numbers them.
constexpr std::uint32_t kWalkProgram = 0;
constexpr std::uint32_t kKernelWalkProgram = 1;
constexpr const char* kTablesAreToCome = "the program that walks by them is being loaded";
constexpr const char* kLockdown = "/sys/kernel/security/lockdown";
constexpr const char* kMaxStack = "/proc/sys/kernel/perf_event_max_stack";

bool is_confidential() {
  const Result<std::string> mode = read_file(kLockdown, 256);
  return mode && mode->find("[confidentiality]") != std::string::npos;
}

std::uint32_t kernel_depth_limit() {
  std::uint32_t limit = FLAMED_MAX_KERNEL_FRAMES;
  if (const Result<std::string> text = read_file(kMaxStack, 64)) {
    std::uint32_t configured = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), configured);
    if (error == std::errc{} && configured > 0) limit = std::min(limit, configured);
  }
  return limit;
}

/// The kernel program's counters of all CPUs, mapped into our memory.
class CounterMemory {
 public:
  static Result<CounterMemory> map(int map_fd, std::size_t cpus) {
    // The kernel rounds the map up to whole pages and refuses a longer mapping, not a shorter one.
    Result<MappedMemory> memory = MappedMemory::map(map_fd, cpus * sizeof(flamed_counters), MappedMemory::Access::kRead,
                                                    "the sampler's counters");
    if (!memory) return std::move(memory).error();
    return CounterMemory(std::move(memory).value());
  }

  /// Each CPU adds to its own line while we read: every field is right by itself. Outcomes are read before
  /// attempts, so that a sum never shows more outcomes than samples taken.
  [[nodiscard]] SampleCounts sum() const {
    SampleCounts sum;
    for (std::size_t cpu = 0; cpu < memory_.as<const flamed_counters>().size(); ++cpu) {
      const SampleCounts line = of(cpu);
      sum.submitted += line.submitted;
      sum.lost_ring_full += line.lost_ring_full;
      sum.lost_no_ring += line.lost_no_ring;
      sum.taken += line.taken;
      sum.run_ns += line.run_ns;
    }
    return sum;
  }

  [[nodiscard]] SampleCounts of(std::size_t cpu) const {
    const auto lines = memory_.as<const flamed_counters>();
    if (cpu >= lines.size()) return {};
    const flamed_counters& line = lines[cpu];
    SampleCounts counts;
    counts.submitted = load(line.submitted);
    counts.lost_ring_full = load(line.lost_ring_full);
    counts.lost_no_ring = load(line.lost_no_ring);
    counts.taken = load(line.taken);
    counts.run_ns = load(line.run_ns);
    return counts;
  }

 private:
  explicit CounterMemory(MappedMemory memory) : memory_(std::move(memory)) {}
  static std::uint64_t load(const __u64& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }

  MappedMemory memory_;
};

/// libbpf tries out bpf_probe_read_kernel(), and where that is refused takes bpf_probe_read_user() for missing as well:
/// it puts bpf_probe_read() in its place (bpf_object__sanitize_prog()), which is refused like the first. Lockdown
/// allows the second. A program that reads kernel memory by type has no other reads, so that all of them can be put
/// back.
class UserReads {
 public:
  explicit UserReads(bool put_back) {
    static const int handler = [] {
      libbpf_prog_handler_opts options{};
      options.sz = sizeof(options);
      options.prog_prepare_load_fn = put_back_reads;
      return ::libbpf_register_prog_handler("perf_event", BPF_PROG_TYPE_PERF_EVENT, bpf_attach_type{}, &options);
    }();
    static_cast<void>(handler);
    wanted() = put_back;
  }
  ~UserReads() { wanted() = false; }
  UserReads(const UserReads&) = delete;
  UserReads& operator=(const UserReads&) = delete;

 private:
  static bool& wanted() {
    static thread_local bool is_wanted = false;
    return is_wanted;
  }
  static int put_back_reads(bpf_program* program, bpf_prog_load_opts* /*options*/, long /*cookie*/) {
    if (!wanted()) return 0;
    // These are the very instructions that are loaded next.
    auto* instructions = const_cast<bpf_insn*>(::bpf_program__insns(program));
    for (bpf_insn& instruction : std::span(instructions, ::bpf_program__insn_cnt(program))) {
      const bool is_helper = instruction.code == (BPF_JMP | BPF_CALL) && instruction.src_reg == 0;
      if (is_helper && instruction.imm == BPF_FUNC_probe_read) instruction.imm = BPF_FUNC_probe_read_user;
    }
    return 0;
  }
};

/// The kernel's own types alone. Where a program asks for one that the kernel lacks, libbpf would look into those of
/// modules as well, for which libbpf 1.1 needs CAP_SYS_ADMIN.
Skeleton open_program() {
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.btf_custom_path = "/sys/kernel/btf/vmlinux";
  return Skeleton(::sampler__open_opts(&options));
}

Result<Skeleton> load_program(std::uint32_t possible_cpus, const KernelProgram::Variant& variant,
                              LibbpfLog::Level level) {
  const bool use_unwind_tables = variant.use_unwind_tables;
  LibbpfLog log;
  const UserReads user_reads(variant.read_by_type);
  Skeleton skeleton = open_program();
  if (!skeleton) return log.error("opening the kernel program", errno);
  ::sampler* program = skeleton.get();
  program->rodata->kernel_depth_limit = kernel_depth_limit();
  program->rodata->use_unwind_tables = use_unwind_tables ? 1 : 0;
  program->rodata->read_by_type = variant.read_by_type ? 1 : 0;
  ::bpf_map__set_max_entries(program->maps.counters, possible_cpus);
  ::bpf_map__set_max_entries(program->maps.sample_rings, possible_cpus);
  ::bpf_program__set_autoload(program->progs.walk_user_stack, false);  // see WalkPrograms
  ::bpf_program__set_autoload(program->progs.walk_kernel, false);      // likewise
  for (bpf_map* map : {program->maps.kernel_sites, program->maps.orc_blocks, program->maps.orc_copies}) {
    ::bpf_map__set_autocreate(map, false);
  }
  if (!use_unwind_tables) {
    for (bpf_map* map : {program->maps.processes, program->maps.mapping_blocks, program->maps.unwind_modules,
                         program->maps.unwind_pages, program->maps.unwind_rules, program->maps.row_slabs,
                         program->maps.rule_cache, program->maps.process_sites}) {
      ::bpf_map__set_autocreate(map, false);
    }
  }
  const Status loaded = log.load("loading the kernel program", level, [&] { return ::sampler__load(program); });
  if (!loaded) return loaded.error();
  return skeleton;
}

/// For another program of the same object file: the maps of the first one, but for `own`. What that does without is not
/// made here either.
Status share_maps(const ::sampler& first, const ::sampler& second, const bpf_map* own, const LibbpfLog& log) {
  bpf_map* of_first = nullptr;
  bpf_map* of_second = nullptr;
  bpf_object__for_each_map(of_second, second.obj) {
    of_first = ::bpf_object__next_map(first.obj, of_first);
    if (of_second == own) continue;
    // Since libbpf 1.4 a map that was not made has a descriptor as well, of something else.
    const int err = ::bpf_map__autocreate(of_first) ? ::bpf_map__reuse_fd(of_second, ::bpf_map__fd(of_first))
                                                    : ::bpf_map__set_autocreate(of_second, false);
    if (err != 0) return log.error("sharing the maps of the kernel program", -err);
  }
  return {};
}

/// Loads nothing else of `second`. From then on the first one goes on in it.
Result<Fd> load_beside(const ::sampler& first, ::sampler& second, bpf_program* program, std::uint32_t index,
                       LibbpfLog& log) {
  bpf_program* other = nullptr;
  bpf_object__for_each_program(other, second.obj) { ::bpf_program__set_autoload(other, other == program); }
  const std::string what = std::string("loading the program ") + ::bpf_program__name(program);
  const Status loaded = log.load(what, LibbpfLog::Level::kError, [&] { return ::sampler__load(&second); });
  if (!loaded) return loaded.error();
  const int program_fd = ::bpf_program__fd(program);
  if (::bpf_map_update_elem(::bpf_map__fd(first.maps.programs), &index, &program_fd, BPF_ANY) != 0) {
    return log.error("chaining the kernel programs", errno);
  }
  return Fd(::fcntl(program_fd, F_DUPFD_CLOEXEC, 0));
}

Result<Fd> load_walk_beside(const ::sampler& first, bool read_by_type) {
  LibbpfLog log;
  const UserReads user_reads(read_by_type);
  const Skeleton skeleton = open_program();
  if (!skeleton) return log.error("opening the program that walks stacks", errno);
  if (const Status shared = share_maps(first, *skeleton.get(), nullptr, log); !shared) return Error(shared.error());
  return load_beside(first, *skeleton.get(), skeleton.get()->progs.walk_user_stack, kWalkProgram, log);
}

Result<Fd> load_kernel_walk_beside(const ::sampler& first, const flamed_kernel_orc& orc) {
  LibbpfLog log;
  const Skeleton skeleton = open_program();
  if (!skeleton) return log.error("opening the program that walks kernel stacks", errno);
  ::sampler* third = skeleton.get();
  // Where the tables are is not in the first one's, which is frozen. The other maps are of no use to it.
  if (const Status shared = share_maps(first, *third, third->maps.rodata_kernel_orc, log); !shared) {
    return Error(shared.error());
  }
  third->rodata_kernel_orc->kernel_orc = orc;
  const auto& own = third->maps;
  for (bpf_map* map : {own.kernel_sites, own.orc_blocks, own.orc_copies}) ::bpf_map__set_autocreate(map, true);
  ::bpf_map__set_max_entries(own.orc_blocks,
                             static_cast<std::uint32_t>(FLAMED_ORC_BLOCKS(orc.text_end - orc.text_start)));
  return load_beside(first, *third, third->progs.walk_kernel, kKernelWalkProgram, log);
}

}  // namespace

void detach(bpf_link* link) { ::bpf_link__destroy(link); }

struct KernelProgram::Loaded {
  Skeleton skeleton;
  CounterMemory counters;
  bool has_tables;
  bool reads_by_type;
  WalkPrograms walks;
  NoticeRing notices{};
};

Result<KernelProgram> KernelProgram::load(bool use_unwind_tables) {
  std::optional<Error> first;
  for (const bool tables : {true, false}) {
    if (tables && !use_unwind_tables) continue;
    for (const bool by_type : {false, true}) {
      // Before 5.12 the helper was there under lockdown too, and read nothing but zeros.
      if (!by_type && is_confidential()) continue;
      const std::string why_no_tables = !use_unwind_tables ? "they are switched off"
                                        : tables           ? kTablesAreToCome
                                                           : first->message();
      Result<KernelProgram> program = make({tables, by_type}, /*is_fallback=*/first.has_value(), why_no_tables);
      if (program) return program;
      const int code = program.error().code();
      if (code == EPERM) return program;  // nothing of this kind is allowed
      // A limit that is easily raised, while what is freed counts on for a moment: no step down can rely on it.
      if (code == kLockedMemoryIsShort) return program;
      if (!first) first = program.error();
    }
  }
  return *first;
}

Result<KernelProgram> KernelProgram::load_variant(const Variant& variant) {
  return make(variant, /*is_fallback=*/false, kTablesAreToCome);
}

Result<KernelProgram> KernelProgram::make(const Variant& variant, bool is_fallback, const std::string& why_no_tables) {
  const int possible = ::libbpf_num_possible_cpus();
  if (possible <= 0) return Error::from_errno("counting the CPUs", -possible);
  const auto cpus = static_cast<std::uint32_t>(possible);

  Result<Skeleton> skeleton =
      load_program(cpus, variant, is_fallback ? LibbpfLog::Level::kDebug : LibbpfLog::Level::kError);
  if (!skeleton) return explain_bpf_memory(skeleton.error());
  Result<CounterMemory> counters = CounterMemory::map(::bpf_map__fd(skeleton->get()->maps.counters), cpus);
  if (!counters) return std::move(counters).error();

  ::sampler& program = *skeleton->get();
  std::unique_ptr<Loaded> loaded(new Loaded{std::move(skeleton).value(),
                                            std::move(counters).value(),
                                            variant.use_unwind_tables,
                                            variant.read_by_type,
                                            {program, variant.read_by_type, why_no_tables}});
  // That something is there is all that counts: the samples themselves say what is missing.
  const auto ignore = [](void*, void*, std::size_t) { return 0; };
  const int map = ::bpf_map__fd(program.maps.notices);
  loaded->notices.reset(::ring_buffer__new(map, ignore, nullptr, nullptr));
  if (!loaded->notices) return Error::from_errno("opening the ring of notices");
  return KernelProgram(std::move(loaded));
}

KernelProgram::KernelProgram(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
KernelProgram::KernelProgram(KernelProgram&&) noexcept = default;
KernelProgram::~KernelProgram() = default;

Status KernelProgram::give_rings(std::span<const SampleRing> rings) {
  const int map = ::bpf_map__fd(loaded_->skeleton.get()->maps.sample_rings);
  std::vector<int> cpus;
  std::vector<int> fds;
  for (const SampleRing& ring : rings) {
    cpus.push_back(ring.cpu());
    fds.push_back(ring.fd());
  }
  // After each call the kernel waits until no program can have the map's old value any more, which takes some 10 ms.
  auto count = static_cast<__u32>(cpus.size());
  if (::bpf_map_update_batch(map, cpus.data(), fds.data(), &count, nullptr) == 0) return {};
  // Kernels before 5.13 don't do it in one call. Whatever else went wrong is told by what follows.
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (::bpf_map_update_elem(map, &cpus[i], &fds[i], BPF_ANY) != 0) {
      return Error::from_errno("handing the ring of samples of CPU " + std::to_string(cpus[i]) +
                               " to the kernel program");
    }
  }
  return {};
}

Result<Attachment> KernelProgram::attach(int cpu, const Fd& timer) {
  const LibbpfLog log;
  // The link takes the descriptor over only where it succeeds, and then closes it: it works on a duplicate.
  Fd duplicate(::dup(timer.get()));
  Attachment attachment(::bpf_program__attach_perf_event(loaded_->skeleton.get()->progs.sample_cpu, duplicate.get()));
  if (!attachment) return log.error("attaching the sampler to CPU " + std::to_string(cpu), errno);
  static_cast<void>(duplicate.release());
  return attachment;
}

int KernelProgram::notices_fd() const { return ::ring_buffer__epoll_fd(loaded_->notices.get()); }

void KernelProgram::consume_notices() { ::ring_buffer__consume(loaded_->notices.get()); }

SampleCounts KernelProgram::counts() const { return loaded_->counters.sum(); }

SampleCounts KernelProgram::counts_of(int cpu) const { return loaded_->counters.of(static_cast<std::size_t>(cpu)); }

std::optional<UnwindMapFds> KernelProgram::unwind_maps() const {
  if (!loaded_->has_tables) return std::nullopt;
  const auto& maps = loaded_->skeleton.get()->maps;
  return UnwindMapFds{::bpf_map__fd(maps.processes), ::bpf_map__fd(maps.mapping_blocks),
                      ::bpf_map__fd(maps.unwind_modules), ::bpf_map__fd(maps.unwind_pages),
                      ::bpf_map__fd(maps.unwind_rules), ::bpf_map__fd(maps.row_slabs),
                      // The kernel shares this memory with us.
                      const_cast<std::uint32_t*>(&loaded_->skeleton.get()->bss->processes_edition)};
}

Status WalkPrograms::load_user_walk() {
  Result<Fd> walk = load_walk_beside(first_, reads_by_type_);
  if (!walk) walk = explain_bpf_memory(walk.error());
  __atomic_store_n(&first_.bss->walk_state, walk ? FLAMED_WALK_LOADED : FLAMED_WALK_REFUSED, __ATOMIC_RELEASE);
  const std::lock_guard lock(mutex_);
  why_no_tables_ = walk ? "" : walk.error().message();
  if (!walk) return std::move(walk).error();
  user_walk_ = std::move(walk).value();
  return {};
}

Status WalkPrograms::load_kernel_walk(const Result<flamed_kernel_orc>& orc) {
  const auto load = [&]() -> Result<Fd> {
    if (reads_by_type_) return Error("it does not let programs read its memory");
    if (!orc) return Error(orc.error());
    return load_kernel_walk_beside(first_, *orc);
  };
  Result<Fd> walk = load();
  if (!walk) walk = explain_bpf_memory(walk.error());
  const std::lock_guard lock(mutex_);
  why_no_kernel_walk_ = walk ? "" : walk.error().message();
  if (!walk) return std::move(walk).error();
  kernel_walk_ = std::move(walk).value();
  return {};
}

bool WalkPrograms::walks_by_tables() const {
  return __atomic_load_n(&first_.bss->walk_state, __ATOMIC_ACQUIRE) == FLAMED_WALK_LOADED;
}

std::string WalkPrograms::why_no_tables() const {
  const std::lock_guard lock(mutex_);
  return why_no_tables_;
}

std::string WalkPrograms::why_no_kernel_walk() const {
  const std::lock_guard lock(mutex_);
  return why_no_kernel_walk_;
}

WalkPrograms& KernelProgram::walks() { return loaded_->walks; }

const WalkPrograms& KernelProgram::walks() const { return loaded_->walks; }

void KernelProgram::set_period(std::int64_t period_ns) {
  // The kernel shares this memory with us. Its readers are stopped.
  loaded_->skeleton.get()->bss->period_ns = static_cast<__u64>(period_ns);
}

bool KernelProgram::reads_by_type() const { return loaded_->reads_by_type; }

int KernelProgram::fd() const { return ::bpf_program__fd(loaded_->skeleton.get()->progs.sample_cpu); }

}  // namespace flamed::daemon
