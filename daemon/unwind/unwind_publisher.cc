// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/unwind_publisher.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>

namespace flamed::daemon {
namespace {

/// Modules sampled within this are in use and never make room.
constexpr std::uint32_t kInUseSeconds = 5;
/// How often rows are asked for again, for a module that found no room.
constexpr std::int64_t kAskAgainNs = kNsPerSecond;
/// Rows of neighbouring pages are placed together up to this many: small enough to find room between others.
constexpr std::uint32_t kMaxRunRows = 8192;
/// 1 GiB of code: no file may take a large part of the page table by lying far apart.
constexpr std::uint32_t kMaxModulePages = FLAMED_MAX_PAGES / 8;

static_assert(sizeof(flamed_unwind_rule) == sizeof(unwinder::Rule));
static_assert(offsetof(flamed_unwind_rule, plt_threshold) == offsetof(unwinder::Rule, plt_threshold));
static_assert(offsetof(flamed_unwind_rule, ra_offset) == offsetof(unwinder::Rule, ra_offset));
static_assert(static_cast<int>(unwinder::CfaKind::kRegisterDeref) == FLAMED_CFA_REGISTER_DEREF);
static_assert(static_cast<int>(unwinder::FpKind::kUnknown) == FLAMED_FP_UNKNOWN);
static_assert(static_cast<int>(unwinder::RaKind::kInRegister) == FLAMED_RA_IN_REGISTER);

std::uint32_t slabs_of(std::size_t budget_bytes) {
  const std::size_t slab_bytes = FLAMED_SLAB_ROWS * sizeof(std::uint32_t);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(budget_bytes / slab_bytes, 1, FLAMED_MAX_SLABS));
}

void store_release(__u32& word, std::uint32_t value) { __atomic_store_n(&word, value, __ATOMIC_RELEASE); }
std::uint32_t load_relaxed(const __u32& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

/// Where the rows of a file's 64 KiB pages begin and end.
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

UnwindPublisher::UnwindPublisher(UnwindMaps& maps, std::size_t budget_bytes, const Clock& clock)
    : maps_(maps),
      budget_bytes_(budget_bytes),
      clock_(clock),
      mapping_runs_(FLAMED_MAPPING_BLOCKS, FLAMED_BLOCK_MAPPINGS),
      module_runs_(1, FLAMED_MAX_MODULES),
      page_runs_(1, FLAMED_MAX_PAGES),
      row_runs_(slabs_of(budget_bytes), FLAMED_SLAB_ROWS),
      slab_exists_(slabs_of(budget_bytes), false) {}

UnwindPublisher::~UnwindPublisher() = default;

void UnwindPublisher::retire(RunAllocator& from, Run run) {
  if (run.count != 0) retired_.push_back({clock_.monotonic(), &from, run});
}

void UnwindPublisher::reclaim() {
  const MonotonicTime now = clock_.monotonic();
  while (!retired_.empty() && now.ns - retired_.front().at.ns >= kGraceNs) {
    const Retired& old = retired_.front();
    old.from->free(old.run.first, old.run.count);
    if (old.from == &row_runs_) {
      const std::uint32_t slab = old.run.first / FLAMED_SLAB_ROWS;
      if (slab_exists_[slab] && row_runs_.is_segment_free(slab)) {
        maps_.drop_slab(slab);
        slab_exists_[slab] = false;
      }
    }
    retired_.pop_front();
  }
}

UnwindPublisher::ModuleEntry* UnwindPublisher::enter_module(ModuleId id) {
  const auto found = modules_.find(id);
  if (found != modules_.end()) return &found->second;
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

void UnwindPublisher::publish(const symbolizer::Process& process) {
  std::lock_guard lock(mutex_);
  reclaim();
  ProcessEntry entry;
  flamed_process value{};
  value.start_ticks = process.id.start_ticks;

  const std::size_t count = process.maps == nullptr ? 0 : process.maps->mappings().size();
  std::optional<std::uint32_t> first;
  if (count > 0 && count <= FLAMED_BLOCK_MAPPINGS) first = mapping_runs_.allocate(static_cast<std::uint32_t>(count));
  if (first) {
    std::span<flamed_mapping> to = maps_.mappings().subspan(*first, count);
    for (std::size_t i = 0; i < count; ++i) {
      const symbolizer::Mapping& mapping = process.maps->mappings()[i];
      std::uint32_t index = FLAMED_NO_MODULE;
      if (mapping.module != kNoModule) {
        if (ModuleEntry* module = enter_module(mapping.module)) {
          index = module->index;
          ++module->processes;
          entry.modules.push_back(mapping.module);
        }
      }
      to[i] = {mapping.start, mapping.end, mapping.file_offset, index, 0};
    }
    entry.mappings = {*first, static_cast<std::uint32_t>(count)};
    value.block = *first / FLAMED_BLOCK_MAPPINGS;
    value.first = *first % FLAMED_BLOCK_MAPPINGS;
    value.count = static_cast<std::uint32_t>(count);
  } else if (count > 0) {
    ++stats_.refused_processes;
  }

  const auto old = processes_.find(process.id.pid);
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

void UnwindPublisher::remove(std::int32_t pid) {
  std::lock_guard lock(mutex_);
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  maps_.remove_process(static_cast<std::uint32_t>(pid));
  leave_modules(found->second);
  retire(mapping_runs_, found->second.mappings);
  processes_.erase(found);
  reclaim();
}

bool UnwindPublisher::has(std::int32_t pid) const {
  std::lock_guard lock(mutex_);
  return processes_.count(pid) != 0;
}

bool UnwindPublisher::is_ready(ModuleId module) const {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  return found != modules_.end() && found->second.ready;
}

bool UnwindPublisher::should_build(ModuleId module) {
  std::lock_guard lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end() || found->second.ready) return false;
  const MonotonicTime now = clock_.monotonic();
  if (found->second.asked_at.ns != 0 && now.ns - found->second.asked_at.ns < kAskAgainNs) return false;
  found->second.asked_at = now;
  return true;
}

void UnwindPublisher::unpublish(ModuleEntry& entry) {
  store_release(maps_.modules()[entry.index].state, FLAMED_MODULE_PENDING);
  retire(page_runs_, entry.pages);
  for (const Run& run : entry.rows) retire(row_runs_, run);
  stats_.rows -= entry.row_count;
  if (entry.row_count != 0) --stats_.modules;
  entry.pages = {};
  entry.rows.clear();
  entry.row_count = 0;
  entry.ready = false;
}

bool UnwindPublisher::evict_one() {
  const auto now_seconds = static_cast<std::uint32_t>(clock_.monotonic().ns / kNsPerSecond);
  ModuleEntry* oldest = nullptr;
  std::uint32_t oldest_sampled = 0;
  for (auto& [id, entry] : modules_) {
    if (entry.rows.empty()) continue;
    const std::uint32_t sampled = load_relaxed(maps_.modules()[entry.index].last_sampled);
    if (oldest != nullptr && sampled >= oldest_sampled) continue;
    oldest = &entry;
    oldest_sampled = sampled;
  }
  if (oldest == nullptr || now_seconds - std::min(now_seconds, oldest_sampled) < kInUseSeconds) return false;
  unpublish(*oldest);
  ++stats_.evictions;
  return true;
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

bool UnwindPublisher::allocate_rows(const std::vector<std::uint32_t>& rows_of_pages, ModuleEntry& entry,
                                    std::vector<std::uint32_t>& first_rows) {
  first_rows.assign(rows_of_pages.size(), 0);
  for (std::size_t page = 0; page < rows_of_pages.size();) {
    std::size_t end = page;
    std::uint32_t count = 0;
    while (end < rows_of_pages.size() && (end == page || count + rows_of_pages[end] <= kMaxRunRows)) {
      first_rows[end] = count;
      count += rows_of_pages[end++];
    }
    if (count != 0) {
      const std::optional<std::uint32_t> first = row_runs_.allocate(count);
      if (!first) return false;
      entry.rows.push_back({*first, count});
      for (std::size_t i = page; i < end; ++i) first_rows[i] += *first;
    }
    page = end;
  }
  return true;
}

UnwindPublisher::Outcome UnwindPublisher::publish_rows(ModuleId id, const unwinder::UnwindRows& rows) {
  std::lock_guard lock(mutex_);
  reclaim();
  ModuleEntry* entry = enter_module(id);
  if (entry == nullptr) return Outcome::kNoRoom;
  flamed_unwind_module& module = maps_.modules()[entry->index];
  if (entry->ready) return Outcome::kDone;
  if (rows.rows.empty()) {
    entry->ready = true;
    store_release(module.state, FLAMED_MODULE_WITHOUT_ROWS);
    return Outcome::kDone;
  }

  const PageRows pages = split_into_pages(rows);
  const auto give_up = [&] {
    // Nobody has seen these runs: they are free at once.
    for (const Run& run : entry->rows) row_runs_.free(run.first, run.count);
    if (entry->pages.count != 0) page_runs_.free(entry->pages.first, entry->pages.count);
    entry->rows.clear();
    entry->pages = {};
    if (rows.rows.size() * sizeof(std::uint32_t) <= budget_bytes_ && evict_one()) return Outcome::kWait;
    ++stats_.refused_modules;
    return Outcome::kNoRoom;
  };

  const auto page_count = static_cast<std::uint32_t>(pages.of_page.size());
  if (page_count > kMaxModulePages) {
    ++stats_.refused_modules;
    return Outcome::kNoRoom;
  }
  const std::optional<std::uint32_t> first_page = page_runs_.allocate(page_count);
  if (!first_page) return give_up();
  entry->pages = {*first_page, page_count};

  std::vector<std::uint32_t> rows_of_pages;
  rows_of_pages.reserve(page_count);
  for (const auto& [first, last] : pages.of_page) {
    // More rows than the program's search covers: that page's code is left as unsupported.
    const bool dense = last - first >= FLAMED_MAX_PAGE_ROWS;
    if (dense) ++stats_.dense_pages;
    rows_of_pages.push_back(dense ? 0 : static_cast<std::uint32_t>(last - first));
  }
  std::vector<std::uint32_t> first_rows;
  if (!allocate_rows(rows_of_pages, *entry, first_rows)) return give_up();

  const std::vector<std::uint16_t> numbers = translate_rules(rows.rules);
  std::uint16_t carry = unwinder::kNoneRule.value;
  for (std::uint32_t page = 0; page < page_count; ++page) {
    const auto [first, last] = pages.of_page[page];
    flamed_unwind_page& to = maps_.pages()[*first_page + page];
    const bool dense = rows_of_pages[page] == 0 && last != first;
    to = {first_rows[page] / FLAMED_SLAB_ROWS, first_rows[page] % FLAMED_SLAB_ROWS, rows_of_pages[page],
          dense ? unwinder::kUnsupportedRule.value : carry};
    if (rows_of_pages[page] != 0) {
      const Result<std::span<std::uint32_t>> slab = maps_.slab(to.slab);
      if (!slab) return give_up();
      slab_exists_[to.slab] = true;
      for (std::size_t i = first; i < last; ++i) {
        const auto place = static_cast<std::uint32_t>(rows.base + rows.rows[i].offset) & 0xffff;
        (*slab)[to.first_row + (i - first)] = (place << 16) | numbers[rows.rows[i].rule.value];
      }
    }
    if (last != first) carry = numbers[rows.rows[last - 1].rule.value];
  }
  module.first_page = *first_page;
  module.page_count = page_count;
  module.base_page = static_cast<std::uint32_t>(pages.base_page);
  module.last_sampled = static_cast<std::uint32_t>(clock_.monotonic().ns / kNsPerSecond);
  store_release(module.state, FLAMED_MODULE_READY);
  entry->ready = true;
  entry->row_count = rows.rows.size();
  stats_.rows += entry->row_count;
  ++stats_.modules;
  return Outcome::kDone;
}

void UnwindPublisher::retain(std::span<const ModuleId> live) {
  std::lock_guard lock(mutex_);
  reclaim();
  for (auto it = modules_.begin(); it != modules_.end();) {
    ModuleEntry& entry = it->second;
    if (entry.processes != 0 || it->first < kFirstFreeModule ||
        std::binary_search(live.begin(), live.end(), it->first)) {
      ++it;
      continue;
    }
    unpublish(entry);
    retire(module_runs_, {entry.index, 1});
    it = modules_.erase(it);
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
