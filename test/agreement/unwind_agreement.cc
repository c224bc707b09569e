// SPDX-License-Identifier: Apache-2.0
#include "test/agreement/unwind_agreement.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "symbolizer/elf/elf_sections.h"
#include "symbolizer/go/go_module.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "test/agreement/mix.h"
#include "test/unit/unwinder/load_rows.h"
#include "unwinder/rows_builder.h"
#include "unwinder/step.h"

namespace flamed::agreement {
namespace {

using namespace unwinder;
using ElfHandle = Handle<::Elf*, ::elf_end>;
using CfiHandle = Handle<::Dwarf_CFI*, ::dwarf_cfi_end>;
using DwarfHandle = Handle<::Dwarf*, ::dwarf_end>;

/// Registers and memory that no two wrong answers agree on by chance. sp is below all the others, so that every
/// caller's frame is above its callee's.
struct Machine {
  Machine(std::uint64_t seed, std::uint8_t sp, std::uint64_t address) : pc(address) {
    for (std::size_t i = 0; i < registers.size(); ++i) registers[i] = 0x7000'0000'0000 + (mix(seed + i) >> 28);
    registers[sp] = 0x6000'0000'0000 + (mix(seed) >> 28);
  }
  static std::uint64_t read(std::uint64_t address) { return 0x7800'0000'0000 + (mix(address) >> 28); }

  AllRegisters registers{};
  std::uint64_t pc;
};

std::string shape_of(const Dwarf_Op* ops, std::size_t count) {
  std::string shape;
  for (std::size_t i = 0; i < count && i < 12; ++i) {
    if (!shape.empty()) shape += ' ';
    const auto atom = ops[i].atom;
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
      shape += "breg" + std::to_string(atom - DW_OP_breg0);
    } else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
      shape += "lit" + std::to_string(atom - DW_OP_lit0);
    } else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
      shape += "reg" + std::to_string(atom - DW_OP_reg0);
    } else {
      char text[16];
      std::snprintf(text, sizeof(text), "op%#x", atom);
      shape += atom == DW_OP_deref ? "deref" : atom == DW_OP_call_frame_cfa ? "cfa" : text;
    }
  }
  return shape;
}

/// Evaluates what libdw gives.
class Evaluator {
 public:
  Evaluator(const Machine& machine, Architecture architecture, std::optional<std::uint64_t> cfa)
      : machine_(machine), architecture_(architecture), cfa_(cfa) {}

  /// An expression that yields a value (a CFA), or a location (a register's) that is then read.
  std::optional<std::uint64_t> run(const Dwarf_Op* ops, std::size_t count, bool is_location) {
    std::vector<std::uint64_t> stack;
    const auto pop = [&] {
      if (stack.empty()) {
        failed_ = true;
        return std::uint64_t{0};
      }
      const std::uint64_t top = stack.back();
      stack.pop_back();
      return top;
    };
    for (std::size_t i = 0; i < count; ++i) {
      const auto atom = ops[i].atom;
      if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
        stack.push_back(value_of(static_cast<std::uint64_t>(atom - DW_OP_breg0)) + ops[i].number);
      } else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
        stack.push_back(static_cast<std::uint64_t>(atom - DW_OP_lit0));
      } else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
        return value_of(static_cast<std::uint64_t>(atom - DW_OP_reg0));
      } else {
        std::uint64_t top = 0;
        switch (atom) {
          case DW_OP_regx:
            return value_of(ops[i].number);
          case DW_OP_bregx:
            stack.push_back(value_of(ops[i].number) + ops[i].number2);
            break;
          case DW_OP_call_frame_cfa:
            if (!cfa_) return std::nullopt;
            stack.push_back(*cfa_);
            break;
          case DW_OP_deref:
            stack.push_back(Machine::read(pop()));
            break;
          case DW_OP_plus_uconst:
            stack.push_back(pop() + ops[i].number);
            break;
          case DW_OP_plus:
            top = pop();
            stack.push_back(pop() + top);
            break;
          case DW_OP_and:
            top = pop();
            stack.push_back(pop() & top);
            break;
          case DW_OP_ge:
            top = pop();
            stack.push_back(static_cast<std::int64_t>(pop()) >= static_cast<std::int64_t>(top) ? 1 : 0);
            break;
          case DW_OP_shl:
            top = pop();
            stack.push_back(pop() << (top & 63));
            break;
          case DW_OP_stack_value:
            is_location = false;
            break;
          default:
            return std::nullopt;
        }
      }
    }
    const std::uint64_t result = pop();
    if (failed_) return std::nullopt;
    return is_location ? Machine::read(result) : result;
  }

  [[nodiscard]] std::uint64_t value_of(std::uint64_t number) {
    // On x86-64 number 16 is the return address's column, and in expressions the program counter.
    if (architecture_ == Architecture::kX86_64 && number == 16) return machine_.pc;
    if (number < machine_.registers.size()) return machine_.registers[number];
    failed_ = true;
    return 0;
  }

 private:
  const Machine& machine_;
  const Architecture architecture_;
  const std::optional<std::uint64_t> cfa_;
  bool failed_ = false;
};

/// What libdw says of the caller at one address.
struct Answer {
  enum class Kind { kNothing, kDamaged, kOutermost, kFrame, kCannotEvaluate };
  Kind kind = Kind::kNothing;
  bool signal_frame = false;
  std::uint64_t sp = 0;
  std::uint64_t pc = 0;
  std::optional<std::uint64_t> fp;    ///< nothing: not known
  std::optional<std::uint64_t> base;  ///< likewise, see RegisterNumbers::base
  std::string shapes;
  // What a Rule may have no room for.
  bool sp_is_cfa = true;
  bool is_expression = false;     ///< the CFA, or where the return address is
  bool fp_is_expression = false;  ///< where fp is
};

class Oracle {
 public:
  explicit Oracle(int fd) : elf_(::elf_begin(fd, ELF_C_READ_MMAP, nullptr)), eh_(::dwarf_getcfi_elf(elf_.get())) {
    dwarf_ = DwarfHandle(::dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
    if (dwarf_) debug_ = ::dwarf_getcfi(dwarf_.get());
  }

  Answer ask(const Machine& machine, Architecture architecture) {
    Answer answer;
    Dwarf_Frame* frame = nullptr;
    if (!addrframe(machine.pc, &frame, answer)) return answer;
    fill(frame, machine, architecture, answer);
    std::free(frame);
    return answer;
  }

 private:
  bool addrframe(std::uint64_t pc, Dwarf_Frame** frame, Answer& answer) {
    static_cast<void>(::dwarf_errno());
    if (eh_ && ::dwarf_cfi_addrframe(eh_.get(), pc, frame) == 0) return true;
    const bool no_match = !eh_ || is_no_match();
    if (no_match && debug_ != nullptr && ::dwarf_cfi_addrframe(debug_, pc, frame) == 0) return true;
    if (!no_match || (debug_ != nullptr && !is_no_match())) answer.kind = Answer::Kind::kDamaged;
    return false;
  }

  static bool is_no_match() {
    const char* message = ::dwarf_errmsg(-1);
    static_cast<void>(::dwarf_errno());
    return message != nullptr && std::string_view(message) == "no matching address range";
  }

  static void fill(Dwarf_Frame* frame, const Machine& machine, Architecture architecture, Answer& answer) {
    const RegisterNumbers numbers = registers_of(architecture);
    const int ra = ::dwarf_frame_info(frame, nullptr, nullptr, &answer.signal_frame);
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    answer.kind = Answer::Kind::kDamaged;
    if (::dwarf_frame_cfa(frame, &ops, &count) != 0) return;
    if (count == 0) {
      answer.kind = Answer::Kind::kNothing;
      return;
    }
    answer.shapes = "cfa: " + shape_of(ops, count);
    const std::optional<std::uint64_t> cfa = Evaluator(machine, architecture, std::nullopt).run(ops, count, false);

    answer.is_expression = count != 1;

    struct Column {
      bool known = false;
      bool is_expression = false;
      bool undefined = false;
      std::optional<std::uint64_t> value;
    };
    const auto column = [&](int number, const char* name) {
      Column result;
      Dwarf_Op memory[3];
      if (::dwarf_frame_register(frame, number, memory, &ops, &count) != 0) return result;
      result.known = true;
      if (count == 0 && ops == memory) {
        result.undefined = true;
      } else if (count == 0) {
        result.value = Evaluator(machine, architecture, cfa).value_of(static_cast<std::uint64_t>(number));
        answer.shapes += std::string("; ") + name + ": same";
      } else {
        answer.shapes += std::string("; ") + name + ": " + shape_of(ops, count);
        result.value = Evaluator(machine, architecture, cfa).run(ops, count, true);
        // libdw gives what is no expression in at most three operations of its own: CFA, offset, and whether that is
        // the value. An expression it gives as it is, behind the CFA.
        result.is_expression = ops != memory;
      }
      return result;
    };
    const Column pc = column(ra, "ra");
    if (!pc.known) return;
    if (pc.undefined) {
      answer.kind = Answer::Kind::kOutermost;
      return;
    }
    const Column sp = column(numbers.sp, "sp");
    const Column fp = column(numbers.fp, "fp");
    if (!sp.known || !fp.known) return;
    answer.sp_is_cfa = cfa.has_value() && sp.value == cfa;
    answer.is_expression = answer.is_expression || pc.is_expression;
    answer.fp_is_expression = fp.is_expression;
    answer.kind = Answer::Kind::kCannotEvaluate;
    if (!cfa || !pc.value || !sp.value || (!fp.undefined && !fp.value)) return;
    answer.kind = Answer::Kind::kFrame;
    answer.sp = *sp.value;
    answer.pc = *pc.value;
    answer.fp = fp.value;
    if (numbers.base != kNoRegister) answer.base = column(numbers.base, "base").value;
  }

  ElfHandle elf_;
  CfiHandle eh_;
  DwarfHandle dwarf_;
  Dwarf_CFI* debug_ = nullptr;
};

/// Empty: not a Go program.
AddressRange go_code_of(int fd) {
  Result<symbolizer::ElfSections> file = symbolizer::ElfSections::open(fd);
  if (!file) return {};
  const auto go = symbolizer::GoModule::read(*file, symbolizer::GoModule::With::kNames);
  if (!go || !go->has_value()) return {};
  const symbolizer::GoLineTable& table = (*go)->table();
  return {table.start(), table.end() - table.start()};
}

class Comparison {
 public:
  Comparison(const std::string& path, int fd, const symbolizer::ElfUnwindSource& source, Tally& tally)
      : path_(path),
        oracle_(fd),
        source_(source),
        go_code_(go_code_of(fd)),
        architecture_(*architecture_of(source)),
        tally_(tally) {}

  void run(const UnwindRows& rows, std::size_t most) {
    const std::size_t every = most == 0 ? 1 : std::max<std::size_t>(1, rows.rows.size() / most);
    for (std::size_t i = every / 2; i < rows.rows.size(); i += every) {
      const std::uint64_t start = rows.base + rows.rows[i].offset;
      const std::uint64_t end = i + 1 < rows.rows.size() ? rows.base + rows.rows[i + 1].offset : start + 64;
      for (const std::uint64_t pc : {start, start - 1, start + mix(start) % (end - start)}) {
        if (is_within(source_.code, pc)) compare(pc, rows.find(pc));
      }
    }
  }

 private:
  static constexpr const char* kAnotherFp = "another fp";
  static constexpr const char* kNotEvaluated = "an expression that this program can't evaluate";

  template <typename Ranges>
  static bool is_within(const Ranges& ranges, std::uint64_t address) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return address >= range.address && address - range.address < range.size;
    });
  }

  void compare(std::uint64_t pc, const Rule& rule) {
    const RegisterNumbers numbers = registers_of(architecture_);
    const Machine machine(mix(pc), numbers.sp, pc);
    WalkFrame frame{.pc = pc,
                    .sp = machine.registers[numbers.sp],
                    .fp = machine.registers[numbers.fp],
                    .lr = numbers.lr == kNoRegister ? 0 : machine.registers[numbers.lr],
                    .lr_known = numbers.lr != kNoRegister,
                    .registers = &machine.registers,
                    .base = 0};  // GCC 12 warns otherwise; the step sets it
    const StepResult result =
        step(rule, architecture_, frame, [](std::uint64_t address) { return std::optional(Machine::read(address)); });
    const Answer answer = oracle_.ask(machine, architecture_);
    const char* difference = difference_between(rule, result, frame, answer);
    if (difference == nullptr) return tally_.add_equal();

    char text[128];
    std::snprintf(text, sizeof(text), " %#" PRIx64 " (our rule: cfa %d, fp %d, ra %d; step %d) ", pc,
                  static_cast<int>(rule.cfa), static_cast<int>(rule.fp), static_cast<int>(rule.ra),
                  static_cast<int>(result));
    const std::string example = path_ + text + answer.shapes;
    if (const char* reason = explanation(difference, pc, rule, answer)) {
      tally_.add_explained(reason, example);
    } else {
      tally_.add_unexplained(difference, example);
    }
  }

  /// nullptr: none. `frame`: the caller's, after our step.
  [[nodiscard]] const char* difference_between(const Rule& rule, StepResult result, const WalkFrame& frame,
                                               const Answer& answer) const {
    switch (answer.kind) {
      case Answer::Kind::kNothing:
        return result == StepResult::kNoInformation ? nullptr : "libdw knows nothing here";
      case Answer::Kind::kDamaged:
        return result == StepResult::kUnsupported || result == StepResult::kNoInformation ? nullptr
                                                                                          : "libdw fails here";
      case Answer::Kind::kOutermost:
        return result == StepResult::kOutermost ? nullptr : "libdw says outermost";
      case Answer::Kind::kCannotEvaluate:
      case Answer::Kind::kFrame:
        break;
    }
    if (result == StepResult::kNoInformation) return "we know nothing, libdw does";
    if (result != StepResult::kNext) return "we can't step, libdw can";
    if (answer.kind == Answer::Kind::kCannotEvaluate) return kNotEvaluated;
    if (frame.sp != answer.sp) return "another sp";
    if (frame.pc != (rule.ra_signed != 0 ? without_signature(architecture_, answer.pc) : answer.pc)) {
      return "another pc";
    }
    if (frame.interrupted != answer.signal_frame) return "signal frame or not";
    if (frame.fp_known != answer.fp.has_value() || (frame.fp_known && frame.fp != *answer.fp)) return kAnotherFp;
    // libdw does not know that calls preserve it where nothing is said of it.
    if (rule.base_words != 0 && answer.base && frame.base != answer.base) return "another base register";
    return nullptr;
  }

  /// Why both may be right; nullptr: not known.
  [[nodiscard]] const char* explanation(std::string_view difference, std::uint64_t pc, const Rule& rule,
                                        const Answer& answer) const {
    // A signal frame's rule begins a byte before it: a return address is looked up by the byte before.
    const auto is_ruled = [&](std::uint64_t address) {
      return std::any_of(source_.ruled_code.begin(), source_.ruled_code.end(), [&](const RuledCode& ruled) {
        return address - ruled.range.address < ruled.range.size && ruled.rule == rule;
      });
    };
    if (is_ruled(pc) || is_ruled(pc + 1)) {
      return "Go's changes of stacks, which its linker describes as ordinary functions or not at all";
    }
    if (pc >= go_code_.address && pc - go_code_.address < go_code_.size) {
      if (rule.signal_frame == 1) return "Go's preemption, which its linker describes as an ordinary function";
      if (difference == kAnotherFp && rule.fp == FpKind::kAtCfa && rule.fp_offset == -16) {
        return "Go's frame pointer, which its linker does not describe";
      }
      if (answer.kind == Answer::Kind::kNothing) return "Go's functions, which its linker does not describe (-w)";
    }
    if (difference == kAnotherFp && answer.fp_is_expression && rule.fp == FpKind::kSame &&
        rule.cfa == CfaKind::kSpOffset && rule.cfa_offset == 8) {
      return "gcc says where the frame pointer was, although it is popped";
    }
    if (rule.cfa == CfaKind::kUnsupported) {
      if (answer.is_expression) return "flamed's rules have no room for the expression";
      if (!answer.sp_is_cfa) return "the caller's sp is not the CFA, and so nothing that flamed's rules have room for";
    }
    if ((difference == kAnotherFp || difference == kNotEvaluated) && rule.fp == FpKind::kUnknown &&
        answer.fp_is_expression) {
      return "flamed's rules have no room for the frame pointer's expression";
    }
    return nullptr;
  }

  const std::string& path_;
  Oracle oracle_;
  const symbolizer::ElfUnwindSource& source_;
  const AddressRange go_code_;
  const Architecture architecture_;
  Tally& tally_;
};

}  // namespace

void compare_unwind(const std::string& path, int fd, std::size_t most, Tally& tally) {
  const Result<symbolizer::ElfUnwindSource> source = symbolizer::read_elf_unwind_source(fd);
  if (!source) return tally.add_unexplained("flamed can't read it", path + ": " + source.error().message());
  const Result<UnwindRows> rows = rows_of(*source);
  if (!rows) return tally.add_unexplained("flamed can't read it", path + ": " + rows.error().message());
  if (rows->stats.cut_short) tally.add_unexplained("flamed finds it damaged", path);
  if (!rows->rows.empty()) Comparison(path, fd, *source, tally).run(*rows, most);
}

}  // namespace flamed::agreement
