// SPDX-License-Identifier: Apache-2.0
#include "test/agreement/source_agreement.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/dwarf/source_locator.h"
#include "symbolizer/model/source_chain.h"
#include "test/agreement/mix.h"

namespace flamed::agreement {
namespace {

using symbolizer::DwarfSections;
using symbolizer::SourceChain;
using symbolizer::SourceFrame;
using ElfHandle = Handle<::Elf*, ::elf_end>;
using DwarfHandle = Handle<::Dwarf*, ::dwarf_end>;

// One answer of the locator is bounded (128 MiB); what this many addresses make stays far below.
constexpr std::size_t kMostAtOnce = 20'000;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::vector<Range> ranges_of(Dwarf_Die& die) {
  std::vector<Range> ranges;
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = ::dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
    // Where a linker dropped the function.
    if (begin != 0 && begin < end) ranges.push_back({begin, end});
  }
  return ranges;
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : text; }

std::string name_of(Dwarf_Die& die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    Dwarf_Attribute attribute;
    if (::dwarf_attr_integrate(&die, name, &attribute) == nullptr) continue;
    if (const char* text = ::dwarf_formstring(&attribute)) return text;
  }
  return {};
}

std::optional<Dwarf_Word> number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (::dwarf_attr(&die, name, &attribute) == nullptr || ::dwarf_formudata(&attribute, &number) != 0) return {};
  return number;
}

/// A unit of debug information.
struct UnitEntry {
  Dwarf_Die die{};                       ///< with the line table
  std::optional<Dwarf_Die> split;        ///< with the functions, where they are in a file of their own (.dwo)
  std::string directory;                 ///< where the compiler ran
  std::vector<std::uint64_t> addresses;  ///< that it says are its own, and none before it
};

/// What libdw says of an address.
struct Answer {
  SourceChain chain;
  /// Where several functions say that they hold the address (two names of one, in assembly): `chain` is of the first,
  /// as dwarf_getscopes() has it, this of the last.
  std::optional<SourceChain> of_last;
};

/// Asks libdw about addresses of one unit.
class Unit {
 public:
  explicit Unit(const UnitEntry& unit)
      : unit_(unit.die), functions_(unit.split.value_or(unit.die)), directory_(unit.directory) {
    ::dwarf_getsrcfiles(&unit_, &files_, &file_count_);
  }

  /// `addresses` are sorted; an answer for each.
  std::vector<Answer> ask(std::span<const std::uint64_t> addresses) {
    addresses_ = addresses;
    scopes_.clear();
    first_.assign(addresses.size(), kNone);
    last_.assign(addresses.size(), kNone);
    walk(functions_, kNone);
    std::vector<Answer> answers(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      answers[i].chain = chain_of(addresses[i], first_[i]);
      if (last_[i] != first_[i]) answers[i].of_last = chain_of(addresses[i], last_[i]);
    }
    return answers;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Scope {
    Dwarf_Die die{};
    std::size_t outer = kNone;  ///< what it was inlined into
  };

  /// As dwarf_getscopes() does, but for all addresses in one pass, and into the classes of lambdas.
  void walk(Dwarf_Die& parent, std::size_t outer) {
    Dwarf_Die child;
    if (::dwarf_child(&parent, &child) != 0) return;
    do {
      std::size_t inner = outer;
      switch (::dwarf_tag(&child)) {
        case DW_TAG_subprogram:
          inner = enter(child, outer, kNone);
          break;
        case DW_TAG_inlined_subroutine:
          inner = enter(child, outer, outer);
          if (inner == kNone) continue;
          break;
        default:
          break;
      }
      if (::dwarf_haschildren(&child) > 0) walk(child, inner);
    } while (::dwarf_siblingof(&child, &child) == 0);
  }

  /// `around`: the scope that the entry is in. kNone: it holds none of the addresses.
  std::size_t enter(Dwarf_Die& die, std::size_t around, std::size_t outer) {
    std::size_t scope = kNone;
    for (const Range& range : ranges_of(die)) {
      auto at = std::lower_bound(addresses_.begin(), addresses_.end(), range.begin);
      for (; at != addresses_.end() && *at < range.end; ++at) {
        if (scope == kNone) {
          scope = scopes_.size();
          scopes_.push_back({die, outer});
        }
        const auto i = static_cast<std::size_t>(at - addresses_.begin());
        if (first_[i] == kNone || first_[i] == around) first_[i] = scope;
        last_[i] = scope;
      }
    }
    return scope;
  }

  SourceChain chain_of(std::uint64_t address, std::size_t innermost) {
    SourceFrame at;  // where in the function that comes next
    Dwarf_Line* line = ::dwarf_getsrc_die(&unit_, address);
    if (line != nullptr) {
      int number = 0;
      ::dwarf_lineno(line, &number);
      at.line = static_cast<std::uint32_t>(number);
      at.file = path_of(::dwarf_linesrc(line, nullptr, nullptr));
    }
    SourceChain chain;
    for (std::size_t i = innermost; i != kNone; i = scopes_[i].outer) {
      Dwarf_Die& die = scopes_[i].die;
      at.function = name_of(die);
      at.inlined = scopes_[i].outer != kNone;
      chain.push_back(at);
      const std::optional<Dwarf_Word> file = number_of(die, DW_AT_call_file);
      at.file = file && *file < file_count_ ? path_of(::dwarf_filesrc(files_, *file, nullptr, nullptr)) : std::string();
      at.line = static_cast<std::uint32_t>(number_of(die, DW_AT_call_line).value_or(0));
    }
    if (innermost == kNone && line != nullptr) chain.push_back(at);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  /// libdw leaves it to its callers to put the directory of the compiler before what is relative.
  [[nodiscard]] std::string path_of(const char* path) const {
    const std::string text = text_of(path);
    if (text == "???") return {};  // what libdw calls a file that no table has
    return text.empty() || text.front() == '/' || directory_.empty() ? text : directory_ + "/" + text;
  }

  Dwarf_Die unit_;
  Dwarf_Die functions_;
  const std::string& directory_;
  Dwarf_Files* files_ = nullptr;
  std::size_t file_count_ = 0;
  std::span<const std::uint64_t> addresses_;
  std::vector<Scope> scopes_;
  // One for each address: in `scopes_`, or kNone.
  std::vector<std::size_t> first_;
  std::vector<std::size_t> last_;
};

std::vector<UnitEntry> units_of(Dwarf* dwarf) {
  std::vector<UnitEntry> units;
  Dwarf_CU* cu = nullptr;
  UnitEntry unit;
  Dwarf_Die split{};
  std::uint8_t type = 0;
  while (::dwarf_get_units(dwarf, cu, &cu, nullptr, &type, &unit.die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    unit.split.reset();
    if (type == DW_UT_skeleton && split.addr != nullptr) unit.split = split;
    Dwarf_Attribute attribute;
    unit.directory = text_of(::dwarf_formstring(::dwarf_attr(&unit.die, DW_AT_comp_dir, &attribute)));
    units.push_back(unit);
  }
  return units;
}

/// Sorted, each once.
std::vector<std::uint64_t> addresses_of(std::vector<UnitEntry>& units) {
  std::vector<std::uint64_t> addresses;
  for (UnitEntry& unit : units) {
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (::dwarf_getsrclines(&unit.die, &lines, &count) != 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      Dwarf_Addr address = 0;
      Dwarf_Addr next = 0;
      bool is_end = false;
      Dwarf_Line* line = ::dwarf_onesrcline(lines, i);
      ::dwarf_lineaddr(line, &address);
      ::dwarf_lineendsequence(line, &is_end);
      addresses.push_back(address);
      if (is_end || i + 1 == count) continue;
      ::dwarf_lineaddr(::dwarf_onesrcline(lines, i + 1), &next);
      if (next > address + 1) addresses.push_back(address + 1 + mix(address) % (next - address - 1));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

std::optional<std::uint64_t> offset_of(const std::vector<DwarfSections::Segment>& code, std::uint64_t address) {
  for (const auto& segment : code) {
    if (address >= segment.address && address - segment.address < segment.size) {
      return segment.offset + (address - segment.address);
    }
  }
  return std::nullopt;
}

std::string written(const SourceChain& chain) {
  std::string text;
  for (const SourceFrame& frame : chain) {
    text += (frame.inlined ? " > " : "") + frame.function + " " + frame.file + ":" + std::to_string(frame.line);
  }
  return text.empty() ? "nothing" : text;
}

/// Both chains without what the line table says.
bool same_calls(SourceChain ours, SourceChain theirs) {
  for (SourceChain* chain : {&ours, &theirs}) {
    if (chain->empty()) continue;
    chain->back().file.clear();
    chain->back().line = 0;
  }
  return ours == theirs;
}

bool same_line(const SourceChain& ours, const SourceChain& theirs) {
  if (ours.empty() || theirs.empty()) return ours.empty() == theirs.empty();
  return ours.back().file == theirs.back().file && ours.back().line == theirs.back().line;
}

bool is_in_function(const SourceChain& chain) {
  return chain.size() > 1 || (chain.size() == 1 && !chain[0].function.empty());
}

class Comparison {
 public:
  Comparison(const std::string& path, const symbolizer::ModuleFiles& files, SourceTally& tally)
      : path_(path), files_(files), tally_(tally) {}

  void run(Dwarf* dwarf, const std::vector<DwarfSections::Segment>& code, std::size_t most) {
    std::vector<UnitEntry> units = units_of(dwarf);
    std::vector<std::uint64_t> addresses = addresses_of(units);
    std::erase_if(addresses, [&](std::uint64_t address) { return !offset_of(code, address); });
    const std::size_t every = most == 0 ? 1 : std::max<std::size_t>(1, addresses.size() / most);
    std::size_t kept = 0;
    for (std::size_t i = every / 2; i < addresses.size(); i += every) addresses[kept++] = addresses[i];
    addresses.resize(kept);

    UnitEntry& nobody = claim(units, addresses);
    for (UnitEntry& unit : units) {
      for (std::size_t begin = 0; begin < unit.addresses.size(); begin += kMostAtOnce) {
        const std::size_t count = std::min(kMostAtOnce, unit.addresses.size() - begin);
        const std::span<const std::uint64_t> some(&unit.addresses[begin], count);
        asked_.insert(asked_.end(), some.begin(), some.end());
        std::vector<Answer> answers(count);
        if (&unit != &nobody) answers = Unit(unit).ask(some);
        for (Answer& answer : answers) theirs_.emplace_back(std::move(answer), &unit);
        if (asked_.size() >= kMostAtOnce) compare(code);
      }
    }
    compare(code);
  }

 private:
  /// Gives each unit its addresses; what is left goes to one that is put behind them.
  static UnitEntry& claim(std::vector<UnitEntry>& units, const std::vector<std::uint64_t>& addresses) {
    std::vector<bool> is_claimed(addresses.size());
    for (UnitEntry& unit : units) {
      for (const Range& range : ranges_of(unit.die)) {
        auto at = std::lower_bound(addresses.begin(), addresses.end(), range.begin);
        for (; at != addresses.end() && *at < range.end; ++at) {
          std::vector<bool>::reference place = is_claimed[static_cast<std::size_t>(at - addresses.begin())];
          if (!place) unit.addresses.push_back(*at);
          place = true;
        }
      }
      std::sort(unit.addresses.begin(), unit.addresses.end());
    }
    UnitEntry& nobody = units.emplace_back();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!is_claimed[i]) nobody.addresses.push_back(addresses[i]);
    }
    return nobody;
  }

  void compare(const std::vector<DwarfSections::Segment>& code) {
    std::vector<std::uint64_t> offsets;
    for (const std::uint64_t address : asked_) offsets.push_back(offset_of(code, address).value_or(UINT64_MAX));
    const Result<std::vector<SourceChain>> ours = symbolizer::locate_sources(files_, offsets);
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (ours) {
        compare(asked_[i], (*ours)[i], theirs_[i].first, *theirs_[i].second);
      } else {
        tally_.lines.add_unexplained("flamed can't read it", path_ + ": " + ours.error().message());
      }
    }
    asked_.clear();
    theirs_.clear();
  }

  void compare(std::uint64_t address, const SourceChain& ours, const Answer& answer, const UnitEntry& unit) {
    const SourceChain& theirs = answer.chain;
    const auto example = [&] {
      char place[32];
      std::snprintf(place, sizeof(place), " %#" PRIx64, address);
      return path_ + place + "\n      flamed " + written(ours) + "\n      libdw  " + written(theirs);
    };
    if (same_line(ours, theirs)) {
      tally_.lines.add_equal();
    } else if (same_line(ours, once(theirs, unit))) {
      tally_.lines.add_explained(kTwice, example());
    } else {
      tally_.lines.add_unexplained("another line", example());
    }

    if (!is_in_function(ours) && !is_in_function(theirs)) return;
    tally_.inlined += theirs.size() > 1;
    if (same_calls(ours, theirs)) {
      tally_.chains.add_equal();
    } else if (same_calls(ours, once(theirs, unit))) {
      tally_.chains.add_explained(kTwice, example());
    } else if (answer.of_last && same_calls(ours, once(*answer.of_last, unit))) {
      tally_.chains.add_explained("of several functions of one address libdw shows the first, flamed the last",
                                  example());
    } else if (unit.split && !is_in_function(ours)) {
      tally_.chains.add_explained("the functions are in another file (.dwo), which flamed does not open", example());
    } else {
      tally_.chains.add_unexplained("another chain", example());
    }
  }

  // From DWARF 5 on, directory 0 of a line table is where the compiler ran. Where that is relative (Debian's libc), it
  // must not be put before it once more: "./argp/./argp/argp-help.c".
  static constexpr const char* kTwice = "with libdw a relative directory of the compiler comes twice";

  /// The chain with that directory once.
  static SourceChain once(SourceChain chain, const UnitEntry& unit) {
    if (unit.directory.empty() || unit.directory.front() == '/') return chain;
    const std::string directory = unit.directory + "/";
    const std::string twice = directory + directory;
    for (SourceFrame& frame : chain) {
      if (frame.file.compare(0, twice.size(), twice) == 0) frame.file.erase(0, directory.size());
    }
    return chain;
  }

  const std::string& path_;
  const symbolizer::ModuleFiles files_;
  SourceTally& tally_;
  std::vector<std::uint64_t> asked_;
  std::vector<std::pair<Answer, const UnitEntry*>> theirs_;  ///< one for each
};

}  // namespace

void compare_sources(const std::string& path, const symbolizer::ModuleFiles& files, std::size_t most,
                     SourceTally& tally) {
  const Result<DwarfSections> module = DwarfSections::open(files.module);
  if (!module) return;
  for (const int fd : {files.module, files.debug}) {
    if (fd < 0) continue;
    const ElfHandle elf(::elf_begin(fd, ELF_C_READ_MMAP, nullptr));
    const DwarfHandle dwarf(::dwarf_begin_elf(elf.get(), DWARF_C_READ, nullptr));
    Dwarf_CU* first = nullptr;
    if (!dwarf || ::dwarf_get_units(dwarf.get(), nullptr, &first, nullptr, nullptr, nullptr, nullptr) != 0) continue;
    const ElfHandle alternate_elf(files.alternate < 0 ? nullptr
                                                      : ::elf_begin(files.alternate, ELF_C_READ_MMAP, nullptr));
    const DwarfHandle alternate(alternate_elf ? ::dwarf_begin_elf(alternate_elf.get(), DWARF_C_READ, nullptr)
                                              : nullptr);
    if (alternate) ::dwarf_setalt(dwarf.get(), alternate.get());
    Comparison(path, files, tally).run(dwarf.get(), module->code(), most);
    return;
  }
}

}  // namespace flamed::agreement
