// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/source_locator.h"

#include <dwarf.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "symbolizer/dwarf/dwarf_budget.h"
#include "symbolizer/dwarf/dwarf_info.h"
#include "symbolizer/dwarf/dwarf_inlines.h"
#include "symbolizer/dwarf/dwarf_lines.h"
#include "symbolizer/dwarf/dwarf_sections.h"

namespace flamed::symbolizer {
namespace {

// Of one chain; the middle of a longer one is left out.
constexpr std::size_t kMaxFrames = 256;
// Of one answer. 10,000 addresses of a program full of templates make 20 MiB.
constexpr std::size_t kMaxAnswerBytes = std::size_t{128} << 20;

struct Query {
  std::uint64_t address = 0;
  std::size_t index = 0;  ///< in the request
  bool is_done = false;   ///< a unit has claimed it
};

std::optional<std::uint64_t> address_of(std::span<const DwarfSections::Segment> code, std::uint64_t offset) {
  for (const DwarfSections::Segment& segment : code) {
    if (offset >= segment.offset && offset - segment.offset < segment.size) {
      return segment.address + (offset - segment.offset);
    }
  }
  return std::nullopt;
}

class Locator {
 public:
  Locator(DwarfInfo& info, std::vector<Query> queries, std::vector<SourceChain>& chains)
      : info_(info), queries_(std::move(queries)), chains_(chains) {
    std::sort(queries_.begin(), queries_.end(), [](const Query& a, const Query& b) { return a.address < b.address; });
  }

  void run() {
    // Units whose root has no addresses are searched last.
    std::vector<const DwarfUnit*> silent;
    for (const DwarfUnit& unit : info_.units()) {
      if (is_full_ || claimed_ == queries_.size()) break;
      if (unit.type == DW_UT_type || unit.type == DW_UT_split_type || unit.type == DW_UT_partial) continue;
      if (!unit.code.ranges && !unit.code.high) {
        silent.push_back(&unit);
        continue;
      }
      locate(unit, claimed_by(unit));
    }
    for (const DwarfUnit* unit : silent) {
      if (is_full_ || claimed_ == queries_.size()) break;
      search(*unit);
    }
  }

 private:
  /// The addresses, sorted, that this unit is the first to claim.
  std::vector<std::size_t> claimed_by(const DwarfUnit& unit) {
    ranges_.clear();
    info_.add_ranges(unit, unit.code, ranges_);
    std::vector<std::size_t> claimed;
    for (const DwarfRange& range : ranges_) {
      auto at = std::lower_bound(queries_.begin(), queries_.end(), range.begin,
                                 [](const Query& query, std::uint64_t wanted) { return query.address < wanted; });
      for (; at != queries_.end() && at->address < range.end && info_.budget().spend(1); ++at) {
        if (std::exchange(at->is_done, true)) continue;
        ++claimed_;
        claimed.push_back(static_cast<std::size_t>(at - queries_.begin()));
      }
    }
    std::sort(claimed.begin(), claimed.end());
    return claimed;
  }

  void search(const DwarfUnit& unit) {
    std::vector<std::size_t> open;
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      if (queries_[i].is_done) continue;
      open.push_back(i);
      addresses.push_back(queries_[i].address);
    }
    const DwarfInlines inlines = read_dwarf_inlines(info_, unit, addresses);
    std::vector<std::size_t> claimed;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (inlines.innermost[i] == DwarfScope::kNone) continue;
      queries_[open[i]].is_done = true;
      ++claimed_;
      claimed.push_back(open[i]);
    }
    locate(unit, claimed);
  }

  void locate(const DwarfUnit& unit, const std::vector<std::size_t>& claimed) {
    if (claimed.empty()) return;
    std::vector<std::uint64_t> addresses;
    std::vector<DwarfLineQuery> rows;
    for (const std::size_t i : claimed) {
      addresses.push_back(queries_[i].address);
      DwarfLineQuery row;
      row.address = queries_[i].address;
      rows.push_back(row);
    }
    const DwarfInlines inlines = read_dwarf_inlines(info_, unit, addresses);
    std::optional<DwarfLines> lines = DwarfLines::open(info_, unit);
    if (lines) lines->find(rows);
    for (std::size_t i = 0; i < claimed.size() && !is_full_; ++i) {
      SourceChain& chain = chains_[queries_[claimed[i]].index];
      chain = make_chain(inlines, inlines.innermost[i], lines, rows[i]);
      account(chain);
    }
  }

  SourceChain make_chain(const DwarfInlines& inlines, std::uint32_t innermost, std::optional<DwarfLines>& lines,
                         const DwarfLineQuery& row) {
    SourceFrame at;  // position in the next function
    if (row.found) {
      at.file = lines->path(row.file);
      at.line = row.line;
    }
    SourceChain chain;
    for (std::uint32_t i = innermost; i != DwarfScope::kNone; i = inlines.scopes[i].outer) {
      const DwarfScope& scope = inlines.scopes[i];
      at.function = info_.function_name(scope.entry);
      at.inlined = scope.outer != DwarfScope::kNone;
      if (chain.size() < kMaxFrames - 1 || !at.inlined) chain.push_back(at);
      at.file = scope.has_call_file && lines ? lines->path(scope.call_file) : std::string();
      at.line = scope.call_line;
    }
    // Code without a function: assembly, or a unit with lines only.
    if (innermost == DwarfScope::kNone && row.found) chain.push_back(at);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  void account(const SourceChain& chain) {
    for (const SourceFrame& frame : chain) {
      answer_bytes_ += sizeof(frame) + frame.function.size() + frame.file.size();
    }
    is_full_ = answer_bytes_ > kMaxAnswerBytes;
  }

  DwarfInfo& info_;
  std::vector<Query> queries_;  ///< by address
  std::vector<SourceChain>& chains_;
  std::size_t claimed_ = 0;  ///< how many of them
  std::vector<DwarfRange> ranges_;
  std::size_t answer_bytes_ = 0;
  bool is_full_ = false;
};

Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) {
  std::vector<SourceChain> chains(offsets.size());
  if (offsets.empty()) return chains;
  Result<DwarfSections> module = DwarfSections::open(files.module);
  if (!module) return std::move(module).error();
  std::vector<Query> queries;
  queries.reserve(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (const auto address = address_of(module->code(), offsets[i])) queries.push_back({*address, i});
  }
  const bool is_separate = files.debug >= 0 && module->size(DwarfSection::kInfo) == 0;

  DwarfBudget budget;
  std::optional<DwarfInfo> alternate;
  if (files.alternate >= 0) {
    Result<DwarfInfo> opened = DwarfInfo::open(files.alternate, nullptr, budget);
    if (!opened) return std::move(opened).error().with_context("the file of shared debug information");
    alternate = std::move(*opened);
  }
  Result<DwarfInfo> info =
      DwarfInfo::open(is_separate ? files.debug : files.module, alternate ? &*alternate : nullptr, budget);
  if (!info) return std::move(info).error().with_context(is_separate ? "the debug file" : "the module");
  Locator(*info, std::move(queries), chains).run();
  return chains;
}

}  // namespace

Result<std::vector<SourceChain>> locate_sources(const ModuleFiles& files, std::span<const std::uint64_t> offsets) {
  try {
    return locate(files, offsets);
  } catch (const std::exception& e) {
    return Error(std::string("cannot read the debug information: ") + e.what());
  }
}

}  // namespace flamed::symbolizer
