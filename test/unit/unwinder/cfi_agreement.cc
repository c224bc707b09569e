// SPDX-License-Identifier: Apache-2.0
//
// Do our rows say what an independent reader says? For every ELF file among the arguments (files and directories), at
// the start of a row, one byte before it and at a random place within, one step is made from random registers over a
// random stack: once with our rule, once by evaluating what libdw's reader (dwarf_cfi_addrframe) gives for that
// address.
//
//   cfi_agreement [--rows-per-file=N] [--no-compare] [--max-padding=N] [--verbose] [--loaded] PATH...
//
// --loaded: also this program and its libraries.
// --rows-per-file: how many rows of each file to compare, 0 for all (the default). --no-compare: only build rows, for
// their cost. --max-padding: build with that BuildInput::max_padding, to see what it saves; implies --no-compare.
// Exit status: 0 when nothing disagrees, 1 otherwise.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "symbolizer/reader/elf_unwind_source.h"
#include "test/unit/unwinder/load_rows.h"
#include "unwinder/rows_builder.h"
#include "unwinder/step.h"

namespace flamed::unwinder {
namespace {

using ElfHandle = Handle<::Elf*, ::elf_end>;
using CfiHandle = Handle<::Dwarf_CFI*, ::dwarf_cfi_end>;
using DwarfHandle = Handle<::Dwarf*, ::dwarf_end>;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

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
  std::optional<std::uint64_t> fp;  ///< nothing: not known
  std::string shapes;
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

    struct Column {
      bool known = false;
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
    answer.kind = Answer::Kind::kCannotEvaluate;
    if (!cfa || !pc.value || !sp.value || (!fp.undefined && !fp.value)) return;
    answer.kind = Answer::Kind::kFrame;
    answer.sp = *sp.value;
    answer.pc = *pc.value;
    answer.fp = fp.value;
  }

  ElfHandle elf_;
  CfiHandle eh_;
  DwarfHandle dwarf_;
  Dwarf_CFI* debug_ = nullptr;
};

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t refused = 0;
  std::uint64_t bytes = 0;
  std::uint64_t section_bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t padding_rows = 0;
  std::uint64_t compared = 0;
  std::uint64_t agreed = 0;
  BuildStats stats;
  double read_seconds = 0;
  double build_seconds = 0;
  RuleTable rules;
  std::size_t most_rules = 0;
  std::array<std::uint64_t, kCfaKinds> cfa{};
  std::array<std::uint64_t, 6> fp{};
  std::array<std::uint64_t, 4> ra{};
  std::uint64_t signal_rows = 0;
  std::map<std::string, std::uint64_t> mismatches;
  std::map<std::string, std::uint64_t> unsupported;
  std::map<std::string, std::uint64_t> refusals;
  struct Biggest {
    std::string path;
    std::uint64_t bytes = 0;
    std::size_t rows = 0;
    double seconds = 0;
  };
  Biggest slowest;
  Biggest most_rows;
};

class Comparison {
 public:
  struct Options {
    std::size_t rows_per_file = 0;
    bool compares = true;
    bool is_verbose = false;
    std::uint32_t max_padding = 0;
  };

  explicit Comparison(const Options& options) : options_(options) {}

  void add(const std::filesystem::path& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return;
    char magic[4] = {};
    if (::pread(fd.get(), magic, 4, 0) != 4 || std::string_view(magic, 4) != "\177ELF") return;

    const double started = cpu_seconds();
    const Result<symbolizer::ElfUnwindSource> source = symbolizer::read_elf_unwind_source(fd.get());
    const double have_source = cpu_seconds();
    if (!source) {
      refuse(source.error().message());
      return;
    }
    const Result<UnwindRows> rows = rows_of(*source, options_.max_padding);
    const double done = cpu_seconds();
    if (!rows) {
      refuse(rows.error().message());
      return;
    }
    const std::uint64_t bytes = std::filesystem::file_size(path);
    ++totals_.files;
    totals_.bytes += bytes;
    totals_.read_seconds += have_source - started;
    totals_.build_seconds += done - have_source;
    for (const auto& section : source->sections) totals_.section_bytes += section.bytes().size();
    const Totals::Biggest here{path, bytes, rows->rows.size(), done - started};
    if (here.seconds > totals_.slowest.seconds) totals_.slowest = here;
    if (here.rows > totals_.most_rows.rows) totals_.most_rows = here;
    count(*rows);
    if (options_.is_verbose) {
      std::printf("%s: %lu bytes, %zu sections, %zu rows, %.4f s\n", path.c_str(), bytes, source->sections.size(),
                  rows->rows.size(), done - started);
      for (std::size_t i = 0; i < kSkippedKinds; ++i) {
        if (rows->stats.skipped[i] != 0) std::printf("  skipped %zu: %lu\n", i, rows->stats.skipped[i]);
      }
    }
    if (options_.compares) compare(path, fd.get(), *source, *rows);
  }

  int report() const {
    const Totals& t = totals_;
    std::printf("files %lu (%lu bytes of ELF, %lu of unwind information), refused %lu\n", t.files, t.bytes,
                t.section_bytes, t.refused);
    for (const auto& [why, count] : t.refusals) std::printf("  refused: %s: %lu\n", why.c_str(), count);
    std::printf(
        "functions %lu, rows %lu, after merging neighbours and with gaps %lu (%lu of them gaps of < 16 bytes)\n",
        t.stats.functions, t.stats.rows_before_merging, t.rows, t.padding_rows);
    std::printf("different rules %zu, at most %zu in one file\n", t.rules.size(), t.most_rules);
    static constexpr const char* kCfaNames[] = {"none",   "unsupported", "outermost",    "sp+n",
                                                "fp+n",   "*(sp+n)",     "*(fp+n)",      "plt",
                                                "signal", "register+n",  "*(register+n)"};
    for (std::size_t i = 0; i < t.cfa.size(); ++i) std::printf("  cfa %-14s %lu\n", kCfaNames[i], t.cfa[i]);
    static constexpr const char* kFpNames[] = {"same", "*(cfa+n)", "*(fp+n)", "*(sp+n)", "register", "unknown"};
    for (std::size_t i = 0; i < t.fp.size(); ++i) std::printf("  fp  %-14s %lu\n", kFpNames[i], t.fp[i]);
    static constexpr const char* kRaNames[] = {"*(cfa+n)", "lr", "*(sp+n)", "register"};
    for (std::size_t i = 0; i < t.ra.size(); ++i) std::printf("  ra  %-14s %lu\n", kRaNames[i], t.ra[i]);
    std::printf("  signal frame rows %lu\n", t.signal_rows);
    static constexpr const char* kSkippedNames[] = {"cfa expression", "fp expression", "ra expression",
                                                    "sp rule",        "bad program",   "bad CIE",
                                                    "bad FDE",        "not code",      "overlap"};
    for (std::size_t i = 0; i < kSkippedKinds; ++i)
      std::printf("skipped: %-16s %lu\n", kSkippedNames[i], t.stats.skipped[i]);
    const double hundred_mb = static_cast<double>(t.bytes) / 1e8;
    std::printf("CPU: reading %.3f s, building %.3f s; %.4f s for 100 MB of ELF\n", t.read_seconds, t.build_seconds,
                hundred_mb > 0 ? (t.read_seconds + t.build_seconds) / hundred_mb : 0);
    for (const Totals::Biggest* file : {&t.slowest, &t.most_rows}) {
      std::printf("%s: %s, %lu bytes, %zu rows, %.3f s\n", file == &t.slowest ? "slowest" : "most rows",
                  file->path.c_str(), file->bytes, file->rows, file->seconds);
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    std::printf("peak memory of this process: %ld KiB\n", usage.ru_maxrss);
    if (!options_.compares) return 0;
    std::printf("compared %lu places: %lu agree\n", t.compared, t.agreed);
    for (const auto& [what, count] : t.unsupported) std::printf("  unsupported: %s: %lu\n", what.c_str(), count);
    std::uint64_t mismatches = 0;
    for (const auto& [what, count] : t.mismatches) {
      std::printf("  MISMATCH: %s: %lu\n", what.c_str(), count);
      mismatches += count;
    }
    std::printf("mismatches: %lu\n", mismatches);
    // A run that compared nothing shows nothing.
    return mismatches == 0 && t.compared != 0 ? 0 : 1;
  }

 private:
  void refuse(const std::string& why) {
    ++totals_.refused;
    ++totals_.refusals[why];
  }

  void count(const UnwindRows& rows) {
    totals_.stats.functions += rows.stats.functions;
    totals_.stats.rows_before_merging += rows.stats.rows_before_merging;
    for (std::size_t i = 0; i < kSkippedKinds; ++i) totals_.stats.skipped[i] += rows.stats.skipped[i];
    if (rows.stats.cut_short) ++totals_.mismatches["a file's unwind information is damaged"];
    totals_.rows += rows.rows.size();
    totals_.most_rules = std::max(totals_.most_rules, rows.rules.size());
    for (const Rule& rule : rows.rules) static_cast<void>(totals_.rules.intern(rule));
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const Row& row = rows.rows[i];
      const Rule& rule = rows.rules[row.rule.value];
      ++totals_.cfa[static_cast<std::size_t>(rule.cfa)];
      if (rule.cfa == CfaKind::kNone && i + 1 < rows.rows.size() && rows.rows[i + 1].offset - row.offset < 16) {
        ++totals_.padding_rows;
      }
      if (rule.cfa <= CfaKind::kOutermost) continue;
      ++totals_.fp[static_cast<std::size_t>(rule.fp)];
      ++totals_.ra[static_cast<std::size_t>(rule.ra)];
      totals_.signal_rows += rule.signal_frame;
    }
  }

  void compare(const std::filesystem::path& path, int fd, const symbolizer::ElfUnwindSource& source,
               const UnwindRows& rows) {
    if (rows.rows.empty()) return;
    Oracle oracle(fd);
    const std::size_t every =
        options_.rows_per_file == 0 ? 1 : std::max<std::size_t>(1, rows.rows.size() / options_.rows_per_file);
    const auto is_code = [&](std::uint64_t address) {
      return std::any_of(source.code.begin(), source.code.end(), [&](const auto& segment) {
        return address >= segment.address && address - segment.address < segment.size;
      });
    };
    for (std::size_t i = every == 1 ? 0 : mix(rows.rows.size()) % every; i < rows.rows.size(); i += every) {
      const std::uint64_t start = rows.base + rows.rows[i].offset;
      const std::uint64_t end = i + 1 < rows.rows.size() ? rows.base + rows.rows[i + 1].offset : start + 64;
      for (const std::uint64_t pc : {start, start - 1, start + mix(start) % (end - start)}) {
        if (is_code(pc)) compare_at(path, pc, *architecture_of(source), rows.find(pc), oracle);
      }
    }
  }

  void compare_at(const std::filesystem::path& path, std::uint64_t pc, Architecture architecture, const Rule& rule,
                  Oracle& oracle) {
    const RegisterNumbers numbers = registers_of(architecture);
    const Machine machine(mix(pc), numbers.sp, pc);
    WalkFrame frame{.pc = pc,
                    .sp = machine.registers[numbers.sp],
                    .fp = machine.registers[numbers.fp],
                    .lr = numbers.lr == kNoRegister ? 0 : machine.registers[numbers.lr],
                    .lr_known = numbers.lr != kNoRegister,
                    .registers = &machine.registers};
    const StepResult result =
        step(rule, architecture, frame, [](std::uint64_t address) { return std::optional(Machine::read(address)); });
    const Answer answer = oracle.ask(machine, architecture);
    ++totals_.compared;

    const char* difference = nullptr;
    switch (answer.kind) {
      case Answer::Kind::kNothing:
        if (result != StepResult::kNoInformation) difference = "libdw knows nothing here";
        break;
      case Answer::Kind::kDamaged:
        if (result != StepResult::kUnsupported && result != StepResult::kNoInformation) difference = "libdw fails here";
        break;
      case Answer::Kind::kOutermost:
        if (result != StepResult::kOutermost) difference = "libdw says outermost";
        break;
      case Answer::Kind::kCannotEvaluate:
      case Answer::Kind::kFrame:
        if (result == StepResult::kUnsupported) {
          ++totals_.unsupported[answer.shapes];
          return;
        }
        if (answer.kind == Answer::Kind::kCannotEvaluate && rule.fp == FpKind::kUnknown) {
          ++totals_.unsupported["frame pointer only: " + answer.shapes];
          return;
        }
        if (result == StepResult::kNoInformation) {
          difference = "we know nothing, libdw does";
        } else if (result != StepResult::kNext) {
          difference = "we can't step, libdw can";
        } else if (answer.kind == Answer::Kind::kCannotEvaluate) {
          difference = "libdw gives an expression that this program can't evaluate";
        } else if (frame.sp != answer.sp) {
          difference = "another sp";
        } else if (frame.pc != (rule.ra_signed != 0 ? answer.pc & user_address_mask(architecture) : answer.pc)) {
          difference = "another pc";
        } else if (frame.interrupted != answer.signal_frame) {
          difference = "signal frame or not";
        } else if (frame.fp_known != answer.fp.has_value() || (frame.fp_known && frame.fp != *answer.fp)) {
          if (rule.fp == FpKind::kUnknown) {
            ++totals_.unsupported["frame pointer only: " + answer.shapes];
            return;
          }
          difference = "another fp";
        }
        break;
    }
    if (difference == nullptr) {
      ++totals_.agreed;
      return;
    }
    std::uint64_t& count = totals_.mismatches[std::string(difference) + "; " + answer.shapes];
    if (++count <= 3) {
      std::printf("%s at %#lx: %s (our rule: cfa %d, fp %d, ra %d; step %d)\n", path.c_str(), pc, difference,
                  static_cast<int>(rule.cfa), static_cast<int>(rule.fp), static_cast<int>(rule.ra),
                  static_cast<int>(result));
    }
  }

  const Options options_;
  Totals totals_;
};

void add_path(Comparison& comparison, const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    comparison.add(path);
    return;
  }
  // The same file may stand under several names.
  std::set<std::pair<dev_t, ino_t>> seen;
  std::vector<std::filesystem::path> files;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (auto entry = std::filesystem::recursive_directory_iterator(path, options, ignored);
       entry != std::filesystem::recursive_directory_iterator(); entry.increment(ignored)) {
    if (!entry->is_regular_file(ignored) || entry->is_symlink(ignored)) continue;
    struct stat status {};
    if (::stat(entry->path().c_str(), &status) != 0 || !seen.emplace(status.st_dev, status.st_ino).second) continue;
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) comparison.add(file);
}

int add_loaded(dl_phdr_info* info, std::size_t, void* paths) {
  // The vdso has a name without a file; add() passes over it.
  const std::string_view name = info->dlpi_name;
  static_cast<std::vector<std::filesystem::path>*>(paths)->emplace_back(name.empty() ? "/proc/self/exe" : name);
  return 0;
}

int run(int argc, char** argv) {
  ::elf_version(EV_CURRENT);
  Comparison::Options options;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    static constexpr std::string_view kRows = "--rows-per-file=";
    static constexpr std::string_view kPadding = "--max-padding=";
    if (argument.substr(0, kRows.size()) == kRows) {
      options.rows_per_file = std::strtoul(argv[i] + kRows.size(), nullptr, 10);
    } else if (argument == "--no-compare") {
      options.compares = false;
    } else if (argument == "--loaded") {
      ::dl_iterate_phdr(add_loaded, &paths);
    } else if (argument == "--verbose") {
      options.is_verbose = true;
    } else if (argument.substr(0, kPadding.size()) == kPadding) {
      options.max_padding = static_cast<std::uint32_t>(std::strtoul(argv[i] + kPadding.size(), nullptr, 10));
      options.compares = false;
    } else {
      paths.emplace_back(argument);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr,
                 "usage: %s [--rows-per-file=N] [--no-compare] [--max-padding=N] [--verbose] [--loaded] PATH...\n",
                 argv[0]);
    return 2;
  }
  Comparison comparison(options);
  for (const auto& path : paths) add_path(comparison, path);
  return comparison.report();
}

}  // namespace
}  // namespace flamed::unwinder

int main(int argc, char** argv) { return flamed::unwinder::run(argc, argv); }
