// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <thread>

#include "daemon/unwind/rule_look_up.h"

namespace flamed::daemon {
namespace {

/// Modules sampled within this time are in use and never evicted.
constexpr std::uint32_t kInUseSeconds = 5;
/// When rows are requested again. Reading a large file again takes seconds, so each refusal doubles the time.
constexpr std::int64_t kAskAgainNs = kNsPerSecond;
constexpr unsigned kMostDoublings = 6;
/// A damaged file fails each time, a starved or killed helper does not.
constexpr unsigned kMostFailures = 3;
/// An upper bound of building: 50 MiB of libLLVM's code take 70 to 120 ms, 1.4 MiB of libc's 2 ms.
constexpr std::int64_t kBuildNsPerCodeByte = 2;
/// A program that compiles something at its start and then idles does not need its compiler's rows any more when they
/// are built. So they are built only after this many times the CPU time of building was sampled in the module.
constexpr std::int64_t kWorthTimes = 4;
/// Building takes a few milliseconds at most.
constexpr std::uint64_t kCheapCodeBytes = 2U << 20;
/// Of one module: some hundred KiB. A file of which more is needed is worth all of its rows.
constexpr std::size_t kMostFunctions = 1024;
/// As long as the CPU budget does not charge it, see CpuGovernor.
constexpr std::int64_t kBeginningNs = 30 * kNsPerSecond;
/// A file that so many processes have had is likely to be needed again by the next ones.
constexpr std::uint32_t kManyStarts = 64;
/// Rows of adjacent pages are placed together up to this many: small enough to find room between others.
constexpr std::uint32_t kMaxRunRows = 8192;
/// From here on, modules that no process has mapped are removed from the module table.
constexpr std::uint32_t kManyModules = FLAMED_MAX_MODULES / 16 * 15;
/// A quarter of the tables is for processes that run at the start and were not sampled yet.
constexpr std::uint32_t kSpareMappings = FLAMED_MAPPING_BLOCKS * FLAMED_BLOCK_MAPPINGS / 4;
constexpr std::uint32_t kSpareModules = FLAMED_MAX_MODULES / 4;
constexpr std::size_t kSpareProcesses = FLAMED_MAX_PROCESSES / 4;
/// ModuleIds of publish_code(): files never get as far.
constexpr std::uint32_t kFirstCode = 0xc000'0000;
/// How often a reading of code waits until there is room for its rows.
constexpr int kMostWaits = 8;
/// 1 GiB of code: a file with sparse code must not use a large part of the page table.
constexpr std::uint32_t kMaxModulePages = FLAMED_MAX_PAGES / 8;

static_assert(sizeof(flamed_unwind_rule) == sizeof(unwinder::Rule));
static_assert(offsetof(flamed_unwind_rule, plt_threshold) == offsetof(unwinder::Rule, plt_threshold));
static_assert(offsetof(flamed_unwind_rule, ra_offset) == offsetof(unwinder::Rule, ra_offset));
static_assert(static_cast<int>(unwinder::CfaKind::kPending) == FLAMED_CFA_PENDING);
static_assert(static_cast<int>(unwinder::FpKind::kUnknown) == FLAMED_FP_UNKNOWN);
static_assert(static_cast<int>(unwinder::RaKind::kAtFp) == FLAMED_RA_AT_FP);
static_assert(unwinder::GoLayout::kSavedSp == FLAMED_GO_SAVED_SP);

std::uint32_t slabs_of(std::size_t budget_bytes) {
  const std::size_t slab_bytes = FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(budget_bytes / slab_bytes, 1, FLAMED_MAX_SLABS));
}

/// The mappings of user space. Above it is at most [vsyscall], the last one: the program never looks it up, and its
/// search compares numbers below 2^63.
std::span<const symbolizer::Mapping> user_mappings(const symbolizer::Process& process) {
  if (process.maps == nullptr) return {};
  const std::vector<symbolizer::Mapping>& all = process.maps->mappings();
  const auto end = std::find_if(all.begin(), all.end(), [](const auto& mapping) { return mapping.start >> 63 != 0; });
  return {all.begin(), end};
}

void store_release(__u32& word, std::uint32_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }
std::uint32_t load_relaxed(const __u32& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

/// The ranges of rows of a file's 64 KiB pages.
struct PageRows {
  std::uint64_t base_page = 0;
  std::vector<std::pair<std::size_t, std::size_t>> of_page;  ///< [first, last) in UnwindRows::rows
};

PageRows split_into_pages(const unwinder::UnwindRows& rows) {
  PageRows pages;
  const auto page_of = [&](std::size_t i) { return (rows.base + rows.rows[i].offset) >> FLAMED_PAGE_SHIFT; };
  pages.base_page = page_of(0);
  pages.of_page.resize(page_of(rows.rows.size() - 1) - pages.base_page + 1);
  std::size_t next = 0;
  for (std::size_t page = 0; page < pages.of_page.size(); ++page) {
    const std::size_t first = next;
    while (next < rows.rows.size() && page_of(next) - pages.base_page == page) ++next;
    pages.of_page[page] = {first, next};
  }
  return pages;
}

}  // namespace

/// The places for the rows of one module.
struct UnwindPublisher::Placement {
  explicit Placement(const unwinder::UnwindRows& rows) : pages(split_into_pages(rows)) {
    stored.reserve(pages.of_page.size());
    for (const auto& [first, last] : pages.of_page) {
      // More rows than the program's search covers: that page's code counts as unsupported.
      const bool dense = last - first > FLAMED_MAX_PAGE_ROWS;
      if (dense) ++dense_pages;
      stored.push_back(dense ? 0 : static_cast<std::uint32_t>(last - first));
    }
  }

  /// Allocates runs for the rows. False if there is no room; `runs` has the allocated ones in any case.
  [[nodiscard]] bool allocate_rows(RunAllocator& from) {
    first_rows.assign(stored.size(), 0);
    for (std::size_t page = 0; page < stored.size();) {
      std::size_t end = page;
      std::uint32_t count = 0;
      while (end < stored.size() && (end == page || count + stored[end] <= kMaxRunRows)) {
        first_rows[end] = count;
        count += stored[end++];
      }
      if (count != 0) {
        const std::optional<std::uint32_t> first = from.allocate(count);
        if (!first) return false;
        runs.push_back({*first, count});
        for (std::size_t i = page; i < end; ++i) first_rows[i] += *first;
      }
      page = end;
    }
    return true;
  }
  [[nodiscard]] std::uint32_t page_count() const { return static_cast<std::uint32_t>(stored.size()); }

  PageRows pages;
  std::vector<std::uint32_t> stored;  ///< rows of each page that are stored in a slab
  std::uint64_t dense_pages = 0;
  Run page_run;
  std::vector<Run> runs;
  std::vector<std::uint32_t> first_rows;  ///< of each page, counted over all slabs
  std::vector<std::uint16_t> numbers;     ///< of the rules
};

UnwindPublisher::UnwindPublisher(UnwindMaps& maps, std::size_t budget_bytes, const Clock& clock)
    : maps_(maps),
      budget_bytes_(budget_bytes),
      clock_(clock),
      began_(clock.monotonic()),
      last_code_(kFirstCode),
      mapping_runs_(FLAMED_MAPPING_BLOCKS, FLAMED_BLOCK_MAPPINGS),
      module_runs_(1, FLAMED_MAX_MODULES),
      page_runs_(1, FLAMED_MAX_PAGES),
      row_runs_(slabs_of(budget_bytes), FLAMED_SLAB_ROWS),
      slab_exists_(slabs_of(budget_bytes), false) {
  unwinder::Rule pending;
  pending.cfa = unwinder::CfaKind::kPending;
  static_cast<void>(rules_.intern(pending));  // FLAMED_PENDING_RULE: the first one behind those of all tables
}

UnwindPublisher::~UnwindPublisher() = default;

void UnwindPublisher::log_no_tables(const std::string& why) { spdlog::warn("{}: {}", kFramePointersAlone, why); }

void UnwindPublisher::retire(RunAllocator& from, Run run) {
  if (run.count != 0) retired_.push_back({clock_.monotonic(), &from, run});
}

void UnwindPublisher::reclaim() {
  const MonotonicTime now = clock_.monotonic();
  while (!retired_.empty() && now.ns - retired_.front().at.ns >= kGraceNs) {
    const Retired& old = retired_.front();
    old.from->free(old.run.first, old.run.count);
    retired_.pop_front();
  }
}

void UnwindPublisher::drop_empty_slabs() {
  const std::lock_guard slabs_lock(slabs_mutex_);
  std::vector<std::uint32_t> empty;
  {
    std::lock_guard lock(mutex_);
    reclaim();
    for (std::uint32_t slab = 0; slab < slab_exists_.size(); ++slab) {
      if (!slab_exists_[slab] || !row_runs_.is_segment_free(slab)) continue;
      slab_exists_[slab] = false;
      empty.push_back(slab);
    }
  }
  for (const std::uint32_t slab : empty) maps_.drop_slab(slab);
}

UnwindPublisher::ModuleEntry* UnwindPublisher::enter_module(ModuleId id) {
  const auto found = modules_.find(id);
  if (found != modules_.end()) return &found->second;
  if (module_runs_.used() >= kManyModules) forget_unmapped();
  const std::optional<std::uint32_t> index = module_runs_.allocate(1);
  if (!index) return nullptr;
  ModuleEntry entry;
  entry.index = *index;
  maps_.modules()[*index] = {};
  return &modules_.emplace(id, std::move(entry)).first->second;
}

void UnwindPublisher::leave_modules(const ProcessEntry& process) {
  for (const ModuleId id : process.modules) {
    const auto found = modules_.find(id);
    if (found != modules_.end()) --found->second.processes;
  }
}

bool UnwindPublisher::has_place_for(const symbolizer::Process& process) {
  return user_mappings(process).size() <= FLAMED_BLOCK_MAPPINGS;
}

/// Appends it, in pieces if it is code that the process has made.
void UnwindPublisher::append_mapping(const symbolizer::Mapping& mapping, const CodePlace* code, ProcessEntry& entry,
                                     bool is_new, std::vector<flamed_mapping>& to) {
  const auto refer_to = [&](ModuleId id) {
    ModuleEntry* const module = enter_module(id);
    if (module == nullptr) {
      ++stats_.refused_modules;
      return FLAMED_NO_MODULE;
    }
    module->code_bytes = std::max(module->code_bytes, mapping.end - mapping.start);
    ++module->processes;
    if (is_new) ++module->starts;
    entry.modules.push_back(id);
    return module->index;
  };
  if (mapping.module != kNoModule || code == nullptr) {
    const std::uint32_t index = mapping.module == kNoModule ? FLAMED_NO_MODULE : refer_to(mapping.module);
    to.push_back({mapping.start, mapping.end, mapping.file_offset, index, 0});
    return;
  }
  if (code->areas.empty()) {
    to.push_back({mapping.start, mapping.end, mapping.file_offset, unread_index(), 0});
    return;
  }
  std::uint64_t at = mapping.start;
  for (const CodePlace::Area& area : code->areas) {
    const std::uint64_t start = std::max(at, area.start);
    const std::uint64_t end = std::min(mapping.end, area.end);
    if (start >= end) continue;
    if (at < start) to.push_back({at, start, at, FLAMED_NO_MODULE, 0});
    const std::uint32_t index = area.is_read ? refer_to(code->rows) : unread_index();
    to.push_back({start, end, area.offset + (start - area.start), index, 0});
    at = end;
  }
  if (at < mapping.end) to.push_back({at, mapping.end, at, FLAMED_NO_MODULE, 0});
}

/// The module whose rows never come. Each process that is published listens once more.
std::uint32_t UnwindPublisher::unread_index() {
  if (!unread_) {
    unread_ = module_runs_.allocate(1);
    if (!unread_) return FLAMED_NO_MODULE;
    maps_.modules()[*unread_] = {};
  }
  maps_.modules()[*unread_].noticed = 0;
  return *unread_;
}

void UnwindPublisher::publish(const symbolizer::Process& process, const RuntimePlace& runtime,
                              const CodePlacePtr& code) {
  std::lock_guard lock(mutex_);
  reclaim();
  ProcessEntry entry;
  flamed_process value{};
  value.start_ticks = process.id.start_ticks;
  value.tgid = static_cast<std::uint32_t>(process.id.pid);
  value.exec_id = process.exec_id;
  value.tables = process.tables.newest();
  value.runtime = runtime.layout;
  value.runtime_base = runtime.base;
  entry.start_ticks = process.id.start_ticks;
  entry.exec_id = process.exec_id;
  const auto old = processes_.find(process.id.pid);
  const bool is_new =
      old == processes_.end() || old->second.start_ticks != entry.start_ticks || old->second.exec_id != entry.exec_id;

  std::vector<flamed_mapping> mappings;
  if (has_place_for(process)) {
    const std::span<const symbolizer::Mapping> all = user_mappings(process);
    mappings.reserve(all.size());
    for (const symbolizer::Mapping& mapping : all) append_mapping(mapping, code.get(), entry, is_new, mappings);
  }
  const std::size_t count = mappings.size();
  std::optional<std::uint32_t> first;
  if (count > 0 && count <= FLAMED_BLOCK_MAPPINGS) first = mapping_runs_.allocate(static_cast<std::uint32_t>(count));
  if (first) {
    std::copy(mappings.begin(), mappings.end(), maps_.mappings().begin() + *first);
    entry.mappings = {*first, static_cast<std::uint32_t>(count)};
    value.block = *first / FLAMED_BLOCK_MAPPINGS;
    value.first = *first % FLAMED_BLOCK_MAPPINGS;
    value.count = static_cast<std::uint32_t>(count);
  } else if (!user_mappings(process).empty()) {
    ++stats_.refused_processes;
  }

  if (const Status entered = maps_.put_process(static_cast<std::uint32_t>(process.id.pid), value); !entered) {
    ++stats_.refused_processes;
    leave_modules(entry);
    retire(mapping_runs_, entry.mappings);
    return;
  }
  if (old != processes_.end()) {
    leave_modules(old->second);
    retire(mapping_runs_, old->second.mappings);
    old->second = std::move(entry);
  } else {
    processes_.emplace(process.id.pid, std::move(entry));
  }
}

void UnwindPublisher::remove(const ProcessId& process) {
  std::lock_guard lock(mutex_);
  const auto found = processes_.find(process.pid);
  if (found == processes_.end() || found->second.start_ticks != process.start_ticks) return;
  maps_.remove_process(static_cast<std::uint32_t>(process.pid));
  leave_modules(found->second);
  retire(mapping_runs_, found->second.mappings);
  processes_.erase(found);
  reclaim();
}

bool UnwindPublisher::has_room_to_spare() const {
  std::lock_guard lock(mutex_);
  return mapping_runs_.used() < kSpareMappings && module_runs_.used() < kSpareModules &&
         processes_.size() < kSpareProcesses;
}

bool UnwindPublisher::has(std::int32_t pid) const {
  std::lock_guard lock(mutex_);
  return processes_.count(pid) != 0;
}

void UnwindPublisher::count_build(std::int64_t took_ns) {
  std::lock_guard lock(mutex_);
  ++stats_.builds;
  stats_.build_ns += took_ns;
}

void UnwindPublisher::count_reuse() {
  std::lock_guard lock(mutex_);
  ++stats_.reuses;
}

bool UnwindPublisher::is_ready(ModuleId module) const {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second.ready;
}

unwinder::Code UnwindPublisher::find_code(ModuleId module, std::uint64_t file_offset) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end()) return {unwinder::Code::Is::kPending};
  // As the program marks it: rows in use are not evicted.
  maps_.modules()[found->second.index].last_sampled = static_cast<std::uint32_t>(clock_.monotonic().ns / kNsPerSecond);
  const unwinder::Code code = look_up_rule(maps_, found->second.index, file_offset);
  if (code.is != unwinder::Code::Is::kPending) return code;
  const Function* const function = function_at(found->second, file_offset);
  if (function == nullptr) return code;
  if (function->rows.rows.empty()) return {unwinder::Code::Is::kWithoutRows};
  return {unwinder::Code::Is::kRuled, function->rows.find(file_offset)};
}

unwinder::Code UnwindPublisher::find_code(const CodePlace& place, std::uint64_t address) {
  using Is = unwinder::Code::Is;
  if (place.areas.empty()) return {Is::kPending};
  for (const CodePlace::Area& area : place.areas) {
    if (address < area.start || address >= area.end) continue;
    return area.is_read ? find_code(place.rows, area.offset + (address - area.start)) : unwinder::Code{Is::kPending};
  }
  return {Is::kWithoutRows};
}

bool UnwindPublisher::forget_code(ModuleId rows) {
  std::lock_guard lock(mutex_);
  reclaim();
  const auto found = modules_.find(rows);
  if (found == modules_.end()) return true;
  if (found->second.processes != 0) return false;
  forget(found);
  return true;
}

void UnwindPublisher::listen_for_code(ModuleId rows) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(rows);
  if (found != modules_.end()) maps_.modules()[found->second.index].noticed = 0;
  if (unread_) maps_.modules()[*unread_].noticed = 0;
}

ModuleId UnwindPublisher::publish_code(const unwinder::UnwindRows& rows) {
  ModuleId id;
  {
    std::lock_guard lock(mutex_);
    id = ModuleId{++last_code_};
    ModuleEntry* const entry = enter_module(id);
    if (entry == nullptr) return kNoModule;
    // Its process was sampled a moment ago: others may be evicted for it.
    maps_.modules()[entry->index].last_sampled = static_cast<std::uint32_t>(clock_.monotonic().ns / kNsPerSecond);
  }
  Outcome outcome = publish_rows(id, rows);
  for (int i = 0; i < kMostWaits && outcome == Outcome::kWait; ++i) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kGraceNs));
    outcome = publish_rows(id, rows);
  }
  if (outcome == Outcome::kDone && is_ready(id)) return id;
  static_cast<void>(forget_code(id));
  return kNoModule;
}

const UnwindPublisher::Function* UnwindPublisher::function_at(const ModuleEntry& entry, std::uint64_t file_offset) {
  const auto after = entry.functions.upper_bound(file_offset);
  if (after == entry.functions.begin()) return nullptr;
  const Function& function = std::prev(after)->second;
  return file_offset < function.end ? &function : nullptr;
}

bool UnwindPublisher::want_functions(ModuleId module, std::span<const std::uint64_t> file_offsets) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end()) return false;
  ModuleEntry& entry = found->second;
  bool is_new = false;
  for (const std::uint64_t offset : file_offsets) {
    if (entry.wanted_functions.size() + entry.functions.size() >= kMostFunctions) break;
    if (function_at(entry, offset) != nullptr) continue;
    entry.wanted_functions.push_back(offset);
    is_new = true;
  }
  return is_new;
}

std::vector<std::uint64_t> UnwindPublisher::take_wanted_functions(ModuleId module) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end()) return {};
  std::vector<std::uint64_t> wanted = std::exchange(found->second.wanted_functions, {});
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

void UnwindPublisher::add_functions(ModuleId module, std::span<const std::uint64_t> file_offsets,
                                    std::span<const unwinder::UnwindRows> rows) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.ready) return;
  for (std::size_t i = 0; i < std::min(file_offsets.size(), rows.size()); ++i) {
    const auto& [base, function_rows, rules, stats] = rows[i];
    if (function_rows.empty()) {
      found->second.functions.insert_or_assign(file_offsets[i], Function{file_offsets[i] + 1, {}});
    } else {
      found->second.functions.insert_or_assign(base + function_rows.front().offset,
                                               Function{base + function_rows.back().offset, rows[i]});
    }
  }
}

bool UnwindPublisher::is_worth_at_once(std::uint64_t code_bytes) const {
  return code_bytes <= kCheapCodeBytes || clock_.monotonic().ns - began_.ns < kBeginningNs;
}

bool UnwindPublisher::is_being_built(ModuleId module) const {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.asked_at.ns == 0) return false;
  return clock_.monotonic().ns - found->second.asked_at.ns < kAskAgainNs;
}

bool UnwindPublisher::should_build(ModuleId module, std::int64_t cpu_ns, std::uint64_t code_bytes) {
  std::lock_guard lock(mutex_);
  if (code_bytes != 0) {
    if (ModuleEntry* const entered = enter_module(module))
      entered->code_bytes = std::max(entered->code_bytes, code_bytes);
  }
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.ready) return false;
  const MonotonicTime now = clock_.monotonic();
  ModuleEntry& entry = found->second;
  entry.missed_ns += cpu_ns;
  const std::int64_t worth_ns = static_cast<std::int64_t>(entry.code_bytes) * kBuildNsPerCodeByte * kWorthTimes;
  if (!is_worth_at_once(entry.code_bytes) && entry.missed_ns < worth_ns) return false;
  const std::int64_t pause_ns = kAskAgainNs << std::min(entry.refusals, kMostDoublings);
  if (entry.asked_at.ns != 0 && now.ns - entry.asked_at.ns < pause_ns) return false;
  entry.asked_at = now;
  return true;
}

void UnwindPublisher::unpublish(ModuleEntry& entry) {
  flamed_unwind_module& module = maps_.modules()[entry.index];
  store_release(module.state, FLAMED_MODULE_PENDING);
  module.noticed = 0;
  if (entry.pages.count != 0) --stats_.modules;
  stats_.rows -= entry.row_count;
  retire(page_runs_, entry.pages);
  for (const Run& run : entry.rows) retire(row_runs_, run);
  entry.pages = {};
  entry.rows.clear();
  entry.row_count = 0;
  entry.ready = false;
}

void UnwindPublisher::forget(std::unordered_map<ModuleId, ModuleEntry>::iterator module) {
  unpublish(module->second);
  retire(module_runs_, {module->second.index, 1});
  modules_.erase(module);
}

/// Forgets the less important half: a compiler is needed again soon, its output maybe never.
void UnwindPublisher::forget_unmapped() {
  std::vector<std::pair<Importance, ModuleId>> unmapped;
  for (const auto& [id, entry] : modules_) {
    if (entry.processes == 0 && id >= kFirstFreeModule) unmapped.emplace_back(importance(entry), id);
  }
  const std::size_t half = (unmapped.size() + 1) / 2;
  std::nth_element(unmapped.begin(), unmapped.begin() + static_cast<std::ptrdiff_t>(half), unmapped.end());
  unmapped.resize(half);
  for (const auto& [important, id] : unmapped) forget(modules_.find(id));
}

std::uint32_t UnwindPublisher::last_sampled(const ModuleEntry& entry) const {
  return load_relaxed(maps_.modules()[entry.index].last_sampled);
}

UnwindPublisher::Importance UnwindPublisher::importance(const ModuleEntry& entry) const {
  return {entry.starts >= kManyStarts, last_sampled(entry)};
}

bool UnwindPublisher::evict_one(const ModuleEntry& in_favour_of) {
  const auto now_seconds = static_cast<std::uint32_t>(clock_.monotonic().ns / kNsPerSecond);
  ModuleEntry* least = nullptr;
  Importance least_important{};
  for (auto& [id, entry] : modules_) {
    // The vdso would not be requested again.
    if (entry.pages.count == 0 || id < kFirstFreeModule) continue;
    const Importance important = importance(entry);
    const bool is_in_use = now_seconds - std::min(now_seconds, important.second) < kInUseSeconds;
    if (is_in_use || important.second >= last_sampled(in_favour_of)) continue;
    if (least != nullptr && important >= least_important) continue;
    least = &entry;
    least_important = important;
  }
  if (least == nullptr) return false;
  unpublish(*least);
  ++stats_.evictions;
  return true;
}

bool UnwindPublisher::is_room_coming() const {
  return std::any_of(retired_.begin(), retired_.end(),
                     [this](const Retired& old) { return old.from == &row_runs_ || old.from == &page_runs_; });
}

UnwindPublisher::Outcome UnwindPublisher::refuse(ModuleEntry& entry) {
  ++entry.refusals;
  ++stats_.refused_modules;
  return Outcome::kNoRoom;
}

std::vector<std::uint16_t> UnwindPublisher::translate_rules(const std::vector<unwinder::Rule>& rules) {
  std::vector<std::uint16_t> numbers;
  numbers.reserve(rules.size());
  for (const unwinder::Rule& rule : rules) {
    numbers.push_back(rules_.intern(rule).value_or(unwinder::kUnsupportedRule).value);
  }
  for (; published_rules_ < rules_.size(); ++published_rules_) {
    std::memcpy(&maps_.rules()[published_rules_], &rules_.rules()[published_rules_], sizeof(flamed_unwind_rule));
  }
  return numbers;
}

/// Empty if there is room.
std::optional<UnwindPublisher::Outcome> UnwindPublisher::place(ModuleEntry& entry,
                                                               const std::vector<unwinder::Rule>& rules,
                                                               Placement& placement) {
  if (placement.pages.of_page.size() > kMaxModulePages) return refuse(entry);
  const std::optional<std::uint32_t> first_page = page_runs_.allocate(placement.page_count());
  if (first_page) placement.page_run = {*first_page, placement.page_count()};
  if (first_page && placement.allocate_rows(row_runs_)) {
    for (const Run& run : placement.runs) slab_exists_[run.first / FLAMED_SLAB_ROWS] = true;
    placement.numbers = translate_rules(rules);
    return std::nullopt;
  }
  give_back(placement);
  if (is_room_coming()) return Outcome::kWait;
  // Nothing is evicted for rows that would not fit into empty tables.
  RunAllocator empty(slabs_of(budget_bytes_), FLAMED_SLAB_ROWS);
  if (placement.allocate_rows(empty) && evict_one(entry)) return Outcome::kWait;
  return refuse(entry);
}

/// These runs were never published: they are free at once.
void UnwindPublisher::give_back(Placement& placement) {
  for (const Run& run : placement.runs) row_runs_.free(run.first, run.count);
  if (placement.page_run.count != 0) page_runs_.free(placement.page_run.first, placement.page_run.count);
  placement.runs.clear();
  placement.page_run = {};
}

Status UnwindPublisher::fill(const unwinder::UnwindRows& rows, const Placement& placement) {
  std::uint16_t carry = unwinder::kNoneRule.value;
  for (std::uint32_t page = 0; page < placement.page_count(); ++page) {
    const auto [first, last] = placement.pages.of_page[page];
    flamed_unwind_page& to = maps_.pages()[placement.page_run.first + page];
    const std::uint32_t stored = placement.stored[page];
    const std::uint32_t first_row = placement.first_rows[page];
    const bool dense = stored == 0 && last != first;
    to = {first_row / FLAMED_SLAB_ROWS, first_row % FLAMED_SLAB_ROWS, stored,
          dense ? unwinder::kUnsupportedRule.value : carry};
    if (stored != 0) {
      const Result<std::span<std::uint32_t>> slab = maps_.slab(to.slab);
      if (!slab) return Error(slab.error());
      for (std::size_t i = first; i < last; ++i) {
        const auto place = static_cast<std::uint32_t>(rows.base + rows.rows[i].offset) & 0xffff;
        (*slab)[to.first_row + (i - first)] = (place << 16) | placement.numbers[rows.rows[i].rule.value];
      }
    }
    if (last != first) carry = placement.numbers[rows.rows[last - 1].rule.value];
  }
  return {};
}

bool UnwindPublisher::may_try_again(ModuleId id) {
  std::lock_guard lock(mutex_);
  ModuleEntry* entry = enter_module(id);
  if (entry == nullptr || ++entry->failures >= kMostFailures) return false;
  entry->asked_at = clock_.monotonic();
  ++entry->refusals;
  return true;
}

UnwindPublisher::Outcome UnwindPublisher::publish_rows(ModuleId id, const unwinder::UnwindRows& rows) {
  const std::lock_guard slabs_lock(slabs_mutex_);
  std::unique_lock lock(mutex_);
  reclaim();
  ModuleEntry* entry = enter_module(id);
  if (entry == nullptr) {
    ++stats_.refused_modules;
    return Outcome::kNoRoom;
  }
  if (entry->ready) return Outcome::kDone;
  if (rows.rows.empty()) {
    entry->ready = true;
    store_release(maps_.modules()[entry->index].state, FLAMED_MODULE_WITHOUT_ROWS);
    return Outcome::kDone;
  }
  Placement placement(rows);
  if (const std::optional<Outcome> ended = place(*entry, rows.rules, placement)) return *ended;

  // For each new slab the kernel waits until no CPU runs a program any more, about 10 ms: ingest must not wait for
  // that.
  lock.unlock();
  const Status filled = fill(rows, placement);
  lock.lock();
  const auto found = modules_.find(id);
  if (found == modules_.end()) {  // removed meanwhile
    give_back(placement);
    return Outcome::kDone;
  }
  entry = &found->second;
  if (!filled) {
    give_back(placement);
    return refuse(*entry);
  }
  flamed_unwind_module& module = maps_.modules()[entry->index];
  module.first_page = placement.page_run.first;
  module.page_count = placement.page_run.count;
  module.base_page = static_cast<std::uint32_t>(placement.pages.base_page);
  module.edition = ++last_edition_;
  store_release(module.state, FLAMED_MODULE_READY);
  entry->ready = true;
  entry->functions.clear();
  entry->refusals = 0;
  entry->pages = placement.page_run;
  for (const Run& run : placement.runs) entry->row_count += run.count;
  entry->rows = std::move(placement.runs);
  stats_.rows += entry->row_count;
  stats_.dense_pages += placement.dense_pages;
  ++stats_.modules;
  return Outcome::kDone;
}

void UnwindPublisher::retain(std::span<const ModuleId> live) {
  std::lock_guard lock(mutex_);
  reclaim();
  for (auto it = modules_.begin(); it != modules_.end();) {
    const auto module = it++;
    if (module->second.processes != 0 || module->first < kFirstFreeModule ||
        std::binary_search(live.begin(), live.end(), module->first)) {
      continue;
    }
    forget(module);
  }
}

UnwindPublisher::Stats UnwindPublisher::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.processes = processes_.size();
  stats.mappings = mapping_runs_.used();
  stats.row_bytes = std::size_t{row_runs_.used()} * sizeof(std::uint32_t);
  stats.slab_bytes = static_cast<std::size_t>(std::count(slab_exists_.begin(), slab_exists_.end(), true)) *
                     FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
  stats.budget_bytes = budget_bytes_;
  stats.rules = rules_.size();
  return stats;
}

}  // namespace flamed::daemon
