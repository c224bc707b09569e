// SPDX-License-Identifier: Apache-2.0
#include "unwinder/rows_builder.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace flamed::unwinder {
namespace {

constexpr std::uint64_t kMaxSpan = std::uint64_t{1} << 32;
/// Functions between two reads of the clock: about a millisecond's worth.
constexpr std::size_t kFunctionsPerTimeCheck = 4096;

std::uint64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// One FDE, to be processed in the order of addresses.
struct Function {
  std::uint32_t begin;         ///< from the base
  std::uint32_t size;          ///< clipped to its executable range
  std::uint32_t instructions;  ///< offset in its section
  std::uint32_t instruction_bytes;
  std::uint32_t section : 8;
  std::uint32_t cie : 24;
};
static_assert(sizeof(Function) == 20);
constexpr std::size_t kMaxSections = 256;
static_assert(FrameRecords::kMaxCies <= std::size_t{1} << 24);

class Builder {
 public:
  Builder(const BuildInput& input, const BuildLimits& limits)
      : input_(input),
        limits_(limits),
        registers_(registers_of(input.architecture)),
        rules_(limits.max_rules),
        started_ns_(thread_cpu_ns()) {}

  Result<UnwindRows> build() {
    if (input_.code.empty()) return std::move(result_);
    if (Status status = check_input(); !status) return std::move(status).error();
    for (const FrameSection& section : input_.sections) {
      if (Status status = collect(section); !status) return std::move(status).error();
    }
    const auto comes_first = [](const Function& a, const Function& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      if (a.section != b.section) return a.section < b.section;
      return a.instructions < b.instructions;
    };
    if (!std::is_sorted(functions_.begin(), functions_.end(), comes_first)) {
      std::sort(functions_.begin(), functions_.end(), comes_first);
    }

    result_.rows.reserve(std::min(functions_.size() * 6, limits_.max_rows));
    const BuildStats before = result_.stats;
    if (Status status = add_functions(); !status) return std::move(status).error();
    if (is_base_needed_) {
      // Once more, now that it is known that rules have to say where it is.
      is_base_kept_ = true;
      result_.stats = before;
      result_.rows.clear();
      rules_ = RuleTable(limits_.max_rules);
      covered_to_ = 0;
      if (Status status = add_functions(); !status) return std::move(status).error();
    }
    for (const RuledCode& ruled : input_.ruled_code) {
      if (Status status = add_ruled(ruled); !status) return std::move(status).error();
    }
    result_.rules.assign(rules_.rules().begin(), rules_.rules().end());
    return std::move(result_);
  }

 private:
  Status check_input() {
    std::uint64_t end = 0;
    for (const AddressRange& range : input_.code) {
      if (range.address < end) return Error("executable ranges overlap or are not in order");
      if (__builtin_add_overflow(range.address, range.size, &end)) {
        return Error("an executable range reaches over the end of the address space");
      }
    }
    result_.base = input_.code.front().address;
    if (end - result_.base >= kMaxSpan) {
      return Error("executable code spans " + std::to_string(end - result_.base) + " bytes, more than the limit of " +
                   std::to_string(kMaxSpan));
    }
    if (input_.sections.size() > kMaxSections) return Error("too many sections with unwind information");
    for (const FrameSection& section : input_.sections) {
      const std::uint64_t limit =
          std::min<std::uint64_t>(limits_.max_section_bytes, std::numeric_limits<std::uint32_t>::max());
      if (section.bytes.size() > limit) {
        return Error("unwind information of " + std::to_string(section.bytes.size()) +
                     " bytes, more than the limit of " + std::to_string(limit));
      }
    }
    return {};
  }

  Status check_time() const {
    if (thread_cpu_ns() - started_ns_ <= limits_.max_cpu_ns) return {};
    return Error("reading the unwind information took more than the limit of " +
                 std::to_string(limits_.max_cpu_ns / 1'000'000) + " ms of CPU time");
  }

  void count(Skipped kind) { ++result_.stats.skipped[static_cast<std::size_t>(kind)]; }

  /// The executable range with `address`, or null. Functions come mostly in order: the last result is tried first.
  const AddressRange* code_at(std::uint64_t address) {
    const auto holds = [&](const AddressRange& range) {
      return address >= range.address && address - range.address < range.size;
    };
    if (last_code_ != nullptr && holds(*last_code_)) return last_code_;
    const auto after = std::upper_bound(input_.code.begin(), input_.code.end(), address,
                                        [](std::uint64_t at, const AddressRange& range) { return at < range.address; });
    if (after == input_.code.begin() || !holds(*(after - 1))) return nullptr;
    last_code_ = &*(after - 1);
    return last_code_;
  }

  Status collect(const FrameSection& section) {
    records_.emplace_back(section, input_.architecture);
    FrameRecords& records = records_.back();
    Fde fde;
    for (std::size_t seen = 1;; ++seen) {
      if (seen % kFunctionsPerTimeCheck == 0) {
        if (Status status = check_time(); !status) return std::move(status).error();
      }
      switch (records.next(fde)) {
        case FrameRecords::Next::kFinished:
          return {};
        case FrameRecords::Next::kDamaged:
          result_.stats.cut_short = true;
          return {};
        case FrameRecords::Next::kBadFde:
          count(Skipped::kBadFde);
          continue;
        case FrameRecords::Next::kBadCie:
          count(Skipped::kBadCie);
          continue;
        case FrameRecords::Next::kFde:
          break;
      }
      if (fde.size == 0) continue;
      const AddressRange* code = code_at(fde.begin);
      if (code == nullptr) {
        count(Skipped::kNotCode);
        continue;
      }
      if (functions_.size() >= limits_.max_functions) {
        return Error("more functions in the unwind information than the limit of " +
                     std::to_string(limits_.max_functions));
      }
      const std::uint64_t size = std::min(fde.size, code->address + code->size - fde.begin);
      functions_.push_back(Function{
          .begin = static_cast<std::uint32_t>(fde.begin - result_.base),
          .size = static_cast<std::uint32_t>(size),
          .instructions = static_cast<std::uint32_t>(fde.instructions.data() - section.bytes.data()),
          .instruction_bytes = static_cast<std::uint32_t>(fde.instructions.size()),
          .section = static_cast<std::uint32_t>(records_.size() - 1) & 0xff,
          .cie = fde.cie & 0xff'ffff,
      });
    }
  }

  Status add_functions() {
    std::size_t done = 0;
    for (const Function& function : functions_) {
      if (++done % kFunctionsPerTimeCheck == 0) {
        if (Status status = check_time(); !status) return status;
      }
      if (Status status = add_rows(function); !status) return status;
    }
    return covered_to_ != 0 ? append(covered_to_, kNoneRule) : Status{};
  }

  Status add_rows(const Function& function) {
    const std::uint64_t begin = function.begin;
    const std::uint64_t end = begin + function.size;
    if (begin < covered_to_) count(Skipped::kOverlap);
    if (end <= covered_to_) return {};
    if (covered_to_ != 0 && begin > covered_to_ && begin - covered_to_ > input_.max_padding) {
      if (Status status = append(covered_to_, kNoneRule); !status) return status;
    }
    // If an earlier function reaches into this one, its rows stay.
    const std::uint64_t from = std::max(begin, covered_to_);
    covered_to_ = end;
    ++result_.stats.functions;

    const Cie& cie = records_[function.section].cie(function.cie);
    CfaProgram program(
        cie.context, input_.sections[function.section].bytes.subspan(function.instructions, function.instruction_bytes),
        stack_, cie.initial, result_.base + begin);
    std::uint64_t at = begin;
    RuleId rule = kNoneRule;
    while (at < end) {
      const CfaProgram::Stop stop = program.run();
      if (stop == CfaProgram::Stop::kFailed) {
        // From `at` on, the instructions can't be interpreted.
        count(Skipped::kBadProgram);
        rule = kUnsupportedRule;
      } else if (program.take_changed()) {
        const std::optional<RuleId> found = rules_.intern(rule_of(program.state(), cie));
        if (!found) {
          return Error("more different rules in the unwind information than the limit of " +
                       std::to_string(limits_.max_rules));
        }
        rule = *found;
      }
      ++result_.stats.rows_before_merging;
      const std::uint64_t to = stop == CfaProgram::Stop::kAdvanced ? program.location() - result_.base : end;
      if (to > from) {
        if (Status status = append(std::max(at, from), rule); !status) return status;
      }
      at = to;
    }
    return {};
  }

  /// Replaces the rows there.
  Status add_ruled(const RuledCode& ruled) {
    const AddressRange& range = ruled.range;
    const AddressRange* code = code_at(range.address);
    if (code == nullptr || range.size == 0 || range.size > code->address + code->size - range.address) {
      count(Skipped::kNotCode);
      return {};
    }
    const std::optional<RuleId> rule = rules_.intern(ruled.rule);
    if (!rule) return Error("more different rules than the limit of " + std::to_string(limits_.max_rules));
    const std::uint64_t to = range.address + range.size - result_.base;
    const std::uint64_t begin = range.address - result_.base;
    const bool is_signal_frame = ruled.rule.cfa == CfaKind::kSignalFrame;
    const std::uint64_t from = is_signal_frame && range.address > code->address ? begin - 1 : begin;

    std::vector<Row> rows;
    rows.reserve(result_.rows.size() + 2);
    rows.swap(result_.rows);
    RuleId at_end = kNoneRule;  // the rule at `to`
    auto row = rows.begin();
    for (; row != rows.end() && row->offset <= to; ++row) {
      at_end = row->rule;
      if (row->offset >= from) continue;
      if (Status status = append(row->offset, row->rule); !status) return status;
    }
    if (Status status = append(from, *rule); !status) return status;
    if (Status status = append(to, at_end); !status) return status;
    for (; row != rows.end(); ++row) {
      if (Status status = append(row->offset, row->rule); !status) return status;
    }
    return {};
  }

  Status append(std::uint64_t offset, RuleId rule) {
    std::vector<Row>& rows = result_.rows;
    if (!rows.empty() && rows.back().rule == rule) return {};
    if (rows.size() >= limits_.max_rows) {
      return Error("more unwind rows than the limit of " + std::to_string(limits_.max_rows));
    }
    rows.push_back(Row{.offset = static_cast<std::uint32_t>(offset), .rule = rule});
    return {};
  }

  Rule unsupported(Skipped why) {
    count(why);
    Rule rule;
    rule.cfa = CfaKind::kUnsupported;
    return rule;
  }

  Rule rule_of(const FrameState& state, const Cie& cie) {
    Rule rule;
    rule.signal_frame = cie.signal_frame ? 1 : 0;
    if (state.ra.kind == RegisterState::Kind::kUndefined) {
      rule.signal_frame = 0;
      rule.cfa = CfaKind::kOutermost;
      return rule;
    }
    if (!set_cfa(state.cfa, rule)) {
      if (state.cfa.kind == CfaState::Kind::kUnset) return Rule{};
      return unsupported(Skipped::kCfaExpression);
    }
    if (!set_return_address(state, rule)) return unsupported(Skipped::kRaExpression);
    if (!sp_is_cfa(state)) return unsupported(Skipped::kSpRule);
    if (!set_frame_pointer(state.fp, rule)) {
      count(Skipped::kFpExpression);
      rule.fp = FpKind::kUnknown;
    }
    // At the end of a function with an aligned stack, gcc still says where the frame pointer was saved, although it is
    // popped by then: there is nothing left on the stack but the return address.
    if (rule.fp == FpKind::kAtFp && rule.cfa == CfaKind::kSpOffset && rule.cfa_offset == 8 &&
        registers_.lr == kNoRegister) {
      rule.fp = FpKind::kSame;
      rule.fp_offset = 0;
    }
    if (is_base_kept_) set_base(state.base, rule);
    if (rule.signal_frame == 1 && rule.cfa == CfaKind::kSpDeref && rule.cfa_addend == 0 && rule.fp == FpKind::kAtSp &&
        rule.ra == RaKind::kAtSp) {
      rule.cfa = CfaKind::kSignalFrame;
    }
    return rule;
  }

  /// Rules have room for one.
  static bool needs_register(const Rule& rule) {
    return rule.cfa == CfaKind::kRegisterOffset || rule.cfa == CfaKind::kRegisterDeref ||
           rule.ra == RaKind::kInRegister || rule.fp == FpKind::kInRegister;
  }

  void set_base(const RegisterState& base, Rule& rule) const {
    if (base.kind == RegisterState::Kind::kUnset || base.kind == RegisterState::Kind::kSame) {
      if (needs_register(rule) && rule.other_register != registers_.base) return;
      rule.base_words = kSameBase;
      rule.other_register = registers_.base;
    } else if (base.kind == RegisterState::Kind::kAtCfa) {
      const std::int32_t words = base.offset / -8;
      if (base.offset % 8 == 0 && words > 0 && words < kSameBase) rule.base_words = static_cast<std::uint8_t>(words);
    }
  }

  bool set_cfa(const CfaState& cfa, Rule& rule) {
    rule.cfa_offset = cfa.offset;
    const bool is_sp = cfa.reg == registers_.sp;
    const bool is_fp = cfa.reg == registers_.fp;
    if (!is_sp && !is_fp) rule.other_register = cfa.reg;
    const bool is_by_register = cfa.kind == CfaState::Kind::kRegister || cfa.kind == CfaState::Kind::kDeref;
    if (is_by_register && cfa.reg == registers_.base) is_base_needed_ = true;
    switch (cfa.kind) {
      case CfaState::Kind::kRegister:
        rule.cfa = is_sp ? CfaKind::kSpOffset : is_fp ? CfaKind::kFpOffset : CfaKind::kRegisterOffset;
        return true;
      case CfaState::Kind::kDeref:
        rule.cfa = is_sp ? CfaKind::kSpDeref : is_fp ? CfaKind::kFpDeref : CfaKind::kRegisterDeref;
        rule.cfa_addend = cfa.addend;
        return true;
      case CfaState::Kind::kPlt:
        rule.cfa = CfaKind::kPlt;
        rule.plt_threshold = static_cast<std::uint8_t>(cfa.addend);
        return is_sp;
      case CfaState::Kind::kUnset:
      case CfaState::Kind::kUnsupported:
        break;
    }
    return false;
  }

  bool set_return_address(const FrameState& state, Rule& rule) const {
    const RegisterState& ra = state.ra;
    rule.ra_signed = state.ra_signed ? 1 : 0;
    switch (ra.kind) {
      case RegisterState::Kind::kAtCfa:
        rule.ra = RaKind::kAtCfa;
        rule.ra_offset = ra.offset;
        return true;
      case RegisterState::Kind::kAtRegister:
        rule.ra = RaKind::kAtSp;
        rule.ra_offset = ra.offset;
        return ra.reg == registers_.sp;
      case RegisterState::Kind::kUnset:
      case RegisterState::Kind::kSame:
        rule.ra = RaKind::kInLr;
        return registers_.lr != kNoRegister;
      case RegisterState::Kind::kInRegister:
        if (needs_register(rule)) return false;
        rule.ra = RaKind::kInRegister;
        rule.other_register = ra.reg;
        return true;
      case RegisterState::Kind::kUndefined:  // handled before
      case RegisterState::Kind::kCfaPlus:
      case RegisterState::Kind::kDeref:
      case RegisterState::Kind::kUnsupported:
        break;
    }
    return false;
  }

  /// Whether the caller's sp is the CFA, as both psABIs define it, also in equivalent forms.
  [[nodiscard]] bool sp_is_cfa(const FrameState& state) const {
    const RegisterState& sp = state.sp;
    if (sp.kind == RegisterState::Kind::kUnset) return true;
    if (sp.kind == RegisterState::Kind::kCfaPlus) return sp.offset == 0;
    // Signal frames: *(sp + 160) is the interrupted sp, and the CFA.
    return sp.kind == RegisterState::Kind::kAtRegister && state.cfa.kind == CfaState::Kind::kDeref &&
           state.cfa.addend == 0 && sp.reg == state.cfa.reg && sp.offset == state.cfa.offset;
  }

  bool set_frame_pointer(const RegisterState& fp, Rule& rule) const {
    switch (fp.kind) {
      case RegisterState::Kind::kUnset:
      case RegisterState::Kind::kSame:
        rule.fp = FpKind::kSame;
        return true;
      case RegisterState::Kind::kUndefined:
        rule.fp = FpKind::kUnknown;
        return true;
      case RegisterState::Kind::kAtCfa:
        rule.fp = FpKind::kAtCfa;
        rule.fp_offset = fp.offset;
        return true;
      case RegisterState::Kind::kAtRegister:
        if (fp.reg != registers_.sp && fp.reg != registers_.fp) return false;
        rule.fp = fp.reg == registers_.sp ? FpKind::kAtSp : FpKind::kAtFp;
        rule.fp_offset = fp.offset;
        return true;
      case RegisterState::Kind::kInRegister:
        if (needs_register(rule)) return false;
        rule.fp = FpKind::kInRegister;
        rule.other_register = fp.reg;
        return true;
      case RegisterState::Kind::kCfaPlus:
      case RegisterState::Kind::kDeref:
      case RegisterState::Kind::kUnsupported:
        break;
    }
    return false;
  }

  const BuildInput& input_;
  const BuildLimits& limits_;
  const RegisterNumbers registers_;
  RuleTable rules_;
  const std::uint64_t started_ns_;
  std::vector<FrameRecords> records_;  ///< one for each section
  std::vector<Function> functions_;
  RememberedStates stack_;
  const AddressRange* last_code_ = nullptr;
  /// Functions up to here have rows; from the base; 0: none yet.
  std::uint64_t covered_to_ = 0;
  bool is_base_needed_ = false;  ///< a CFA is found by it: RegisterNumbers::base
  bool is_base_kept_ = false;    ///< rules say where it is
  UnwindRows result_;
};

}  // namespace

Result<UnwindRows> build_rows(const BuildInput& input, const BuildLimits& limits) {
  return Builder(input, limits).build();
}

}  // namespace flamed::unwinder
