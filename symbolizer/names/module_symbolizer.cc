// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/module_symbolizer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <exception>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/keyed_hash.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/names/special_frames.h"
#include "symbolizer/names/vdso_symbols.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kNoSymbol = "no symbol covers this address (stripped?)";
constexpr const char* kNoDebugName = "the debug information has no name for it";
constexpr const char* kNotLookedFor = "no file behind this memory; no perf map or jitdump was looked for yet";
constexpr const char* kNotOpen = "the file is not open";
constexpr const char* kClosed = "its file was closed when no process had it mapped any more";
constexpr const char* kForgotten = "the module is no longer known";

std::string hex(std::uint64_t value) {
  char digits[16];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value, 16);
  static_cast<void>(error);  // 16 digits are enough for any value
  return "0x" + std::string(digits, end);
}

SymbolChainPtr chain_of(Symbol symbol) {
  SymbolChain chain;
  chain.push_back(std::move(symbol));
  return share(std::move(chain));
}

/// `place` precedes the offset in the name: "libc.so.6", "kernel".
SymbolChainPtr unknown(std::string_view place, std::string module, std::uint64_t offset, std::string_view reason,
                       SymbolKind kind = SymbolKind::kUnknown, bool pending = false) {
  std::string name = "[unknown] (";
  name += place;
  name += '+';
  name += hex(offset);
  name += ')';
  Symbol symbol{std::move(name), std::move(module), kind, clean_name(reason)};
  symbol.pending = pending;
  return chain_of(std::move(symbol));
}

/// "/usr/lib/libfoo.so.1 (deleted)" -> "libfoo.so.1".
std::string display_name(std::string_view path) {
  constexpr std::size_t kMaxBytes = 255;  // NAME_MAX
  path = without_deleted_mark(path);
  path = path.substr(path.find_last_of('/') + 1);
  return path.empty() ? "[file]" : clean_name(path, kMaxBytes);
}

bool same_module(const std::weak_ptr<const Module>& a, const ModulePtr& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ModuleSymbolizer::ModuleSymbolizer(Modules& modules, KernelSymbols& kernel, ModuleReader& reader,
                                   DebugFileFinder& debug_files, const Clock& clock)
    : ModuleSymbolizer(modules, kernel, reader, debug_files, clock, Options()) {}

ModuleSymbolizer::ModuleSymbolizer(Modules& modules, KernelSymbols& kernel, ModuleReader& reader,
                                   DebugFileFinder& debug_files, const Clock& clock, Options options)
    : modules_(modules),
      kernel_(kernel),
      reader_(reader),
      debug_files_(debug_files),
      clock_(clock),
      options_(options),
      jit_(reader, clock, {options.table_budget_bytes}) {}

std::vector<SymbolChainPtr> ModuleSymbolizer::symbolise(std::span<const Frame> frames) {
  return name(frames, Depth::kLines);
}

std::vector<SymbolChainPtr> ModuleSymbolizer::name_functions(std::span<const Frame> frames) {
  return name(frames, Depth::kFunctions);
}

std::vector<Frame> ModuleSymbolizer::functions_of(std::span<const Frame> frames) {
  std::vector<Frame> functions(frames.begin(), frames.end());
  std::unordered_map<ModuleId, LoadedPtr> tables;
  for (Frame& frame : functions) {
    const auto [known, is_new] = tables.try_emplace(frame.module);
    if (is_new) known->second = loaded_already(frame.module);
    if (known->second == nullptr || !known->second->symbols.ok()) continue;
    const ElfSymbols& symbols = *known->second->symbols;
    const auto found = symbols.find(frame.offset);
    if (!found || found->offset > frame.offset) continue;
    // Another function may begin there, too.
    const std::uint64_t start = frame.offset - found->offset;
    const auto at_start = symbols.find(start);
    if (at_start && at_start->name.data() == found->name.data()) frame.offset = start;
  }
  return functions;
}

ModuleSymbolizer::Chains ModuleSymbolizer::name(std::span<const Frame> frames, Depth depth) {
  Chains chains(frames.size());
  std::vector<std::size_t> order(frames.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return frames[a] < frames[b]; });
  for (std::size_t first = 0; first < order.size();) {
    std::size_t next = first;
    while (next < order.size() && frames[order[next]].module == frames[order[first]].module) ++next;
    name_group(frames, Group(order).subspan(first, next - first), depth, chains);
    first = next;
  }
  return chains;
}

void ModuleSymbolizer::name_group(std::span<const Frame> frames, Group group, Depth depth, Chains& chains) {
  const ModuleId id = frames[group.front()].module;
  const auto all_unknown = [&](std::string_view place, const std::string& module, std::string_view reason,
                               SymbolKind kind = SymbolKind::kUnknown) {
    for (const std::size_t i : group) chains[i] = unknown(place, module, frames[i].offset, reason, kind);
  };
  if (id == kKernelModule) return name_kernel(frames, group, chains);
  if (id == kVdsoModule) return name_elf(frames, group, vdso(), -1, "[vdso]", SymbolKind::kVdso, depth, chains);
  if (id == kNoModule) return all_unknown("no module", "[unknown]", "no mapping covered this address");
  if (id == kRuntimeModule && options_.runtime_functions != nullptr) {
    for (const std::size_t i : group) chains[i] = options_.runtime_functions->name(frames[i]);
    return;
  }
  if (const SymbolChainPtr special = name_special(frames[group.front()])) {
    for (const std::size_t i : group) chains[i] = special;
    return;
  }

  const ModulePtr module = modules_.find(id);
  if (module == nullptr) return all_unknown("module " + std::to_string(id.value), "[unknown]", kForgotten);
  switch (module->kind) {
    case ModuleKind::kKernel:
      return name_kernel(frames, group, chains);
    case ModuleKind::kVdso:
      return name_elf(frames, group, vdso(), -1, "[vdso]", SymbolKind::kVdso, depth, chains);
    case ModuleKind::kAnonymous:
      return name_jit(frames, group, *module, chains);
    case ModuleKind::kFile:
      break;
  }
  const std::string name = display_name(module->path);
  if (module->is_closed()) return name_closed(frames, group, *module, name, name, chains);
  if (!module->file) {
    // The `modules` thread opens it, or tries again; another look-up here costs nothing.
    for (const std::size_t i : group) {
      const std::string_view why = module->why_no_file.empty() ? kNotOpen : std::string_view(module->why_no_file);
      chains[i] = unknown(name, name, frames[i].offset, why, SymbolKind::kUnknown, /*pending=*/true);
    }
    return;
  }
  name_elf(frames, group, *loaded(module), module->file.get(), name, SymbolKind::kNative, depth, chains);
}

void ModuleSymbolizer::name_closed(std::span<const Frame> frames, Group group, const Module& closed,
                                   std::string_view place, const std::string& module, Chains& chains) {
  for (const std::size_t i : group) {
    chains[i] = closed.names->find(frames[i].offset);
    if (chains[i] != nullptr) continue;
    const std::string_view why = closed.why_no_file.empty() ? kClosed : std::string_view(closed.why_no_file);
    chains[i] = unknown(place, module, frames[i].offset, why);
  }
}

void ModuleSymbolizer::name_kernel(std::span<const Frame> frames, Group group, Chains& chains) {
  for (const std::size_t i : group) {
    Result<KernelSymbols::Name> found = kernel_.find(frames[i].offset);
    if (found.ok()) {
      // Rust code in the kernel has v0 names.
      if (found->name.rfind("_R", 0) == 0) {
        const std::vector<DemangledName> names = demangle(std::span(&found->name, 1));
        if (!names.front().name.empty()) found->name = clean_name(names.front().name);
      }
      chains[i] = chain_of({std::move(found->name), std::move(found->module), SymbolKind::kKernel, {}});
    } else {
      chains[i] = unknown("kernel", "[kernel]", frames[i].offset, found.error().message());
    }
  }
}

namespace {

/// The mangled names of one query, each once.
class Names {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::size_t add(std::string_view mangled) {
    if (mangled.empty()) return kNone;
    const auto [known, is_new] = numbers_.try_emplace(std::string(mangled), mangled_.size());
    if (is_new) mangled_.push_back(known->first);
    return known->second;
  }
  [[nodiscard]] std::span<const std::string> mangled() const { return mangled_; }

 private:
  std::unordered_map<std::string, std::size_t, KeyedTextHash> numbers_;
  std::vector<std::string> mangled_;
};

const char* why_no_symbol(ElfSymbols::Source source) {
  return source == ElfSymbols::Source::kDynsym ? kOnlyDynamicSymbols : kNoSymbol;
}

}  // namespace

void ModuleSymbolizer::name_elf(std::span<const Frame> frames, Group group, const Loaded& loaded, int file,
                                const std::string& module, SymbolKind kind, Depth depth, Chains& chains) {
  const std::string_view place = kind == SymbolKind::kVdso ? std::string_view("vdso") : std::string_view(module);
  if (!loaded.symbols.ok()) {
    const Error& error = loaded.symbols.error();
    for (const std::size_t i : group) {
      chains[i] = unknown(place, module, frames[i].offset, error.message(), SymbolKind::kUnknown,
                          /*pending=*/error.code() == EAGAIN);
    }
    return;
  }
  const ElfSymbols& symbols = *loaded.symbols;
  const Lines lines =
      depth == Depth::kLines ? locate(frames, group, loaded, file) : Lines{std::vector<SourceChain>(group.size())};
  const std::vector<SourceChain>& sources = lines.chains;
  const bool pending = loaded.debug.pending || lines.pending;

  // The group is in order of offset, so the addresses of one function are consecutive.
  Names names;
  std::vector<std::size_t> function_of(group.size(), Names::kNone);
  std::vector<std::vector<std::size_t>> source_names(group.size());
  const char* last = nullptr;
  for (std::size_t k = 0; k < group.size(); ++k) {
    if (const std::optional<SymbolTable::Found> found = symbols.find(frames[group[k]].offset)) {
      function_of[k] = found->name.data() == last ? function_of[k - 1] : names.add(found->name);
      last = found->name.data();
    } else {
      last = nullptr;
    }
    for (const SourceFrame& source : sources[k]) source_names[k].push_back(names.add(source.function));
  }
  const std::vector<DemangledName> demangled = demangle(names.mangled());

  const auto symbol_of = [&](std::size_t name, std::uint64_t offset) {
    Symbol symbol;
    const DemangledName& shown = demangled[name];
    symbol.name = clean_name(shown.name.empty() ? names.mangled()[name] : shown.name);
    symbol.full_name = clean_name(shown.full_name);
    symbol.module = module;
    symbol.kind = symbols.is_go_at(offset) ? SymbolKind::kGo : kind;
    symbol.pending = pending || shown.name.empty();
    symbol.build_id = symbols.build_id();
    return symbol;
  };
  SymbolChainPtr unnamed;  // the last function without a name
  const auto nameless = [&](std::uint64_t offset) -> SymbolChainPtr {
    const std::string why = why_no_symbol(symbols.source()) + loaded.remedy;
    const std::optional<std::uint64_t> start = symbols.find_unnamed(offset);
    if (!start) return unknown(place, module, offset, why, SymbolKind::kUnknown, pending);
    if (unnamed != nullptr && unnamed->front().offset == *start) return unnamed;
    Symbol symbol{"[" + std::string(place) + "+" + hex(*start) + "]", module, SymbolKind::kUnnamed, clean_name(why)};
    symbol.offset = *start;
    symbol.pending = pending;
    symbol.build_id = symbols.build_id();
    return unnamed = chain_of(std::move(symbol));
  };
  std::vector<SymbolChainPtr> whole(names.mangled().size());  // chains without lines, shared by all addresses of a
                                                              // function
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::size_t i = group[k];
    const SourceChain& source = sources[k];
    // The symbol table has priority, so a debug package does not change a function's name. It also distinguishes a
    // compiler's copies from the function itself.
    const std::size_t outermost =
        function_of[k] != Names::kNone || source.empty() ? function_of[k] : source_names[k].front();
    if (outermost == Names::kNone && source.size() < 2) {
      chains[i] = nameless(frames[i].offset);
      continue;
    }
    if (source.empty()) {
      if (whole[outermost] == nullptr) whole[outermost] = chain_of(symbol_of(outermost, frames[i].offset));
      chains[i] = whole[outermost];
      continue;
    }
    if (k != 0 && function_of[k] == function_of[k - 1] && source == sources[k - 1]) {
      chains[i] = chains[group[k - 1]];
      continue;
    }
    SymbolChain chain;
    chain.reserve(source.size());
    for (std::size_t n = 0; n < source.size(); ++n) {
      const std::size_t name = n == 0 ? outermost : source_names[k][n];
      if (name != Names::kNone) {
        chain.push_back(symbol_of(name, frames[i].offset));
      } else if (n == 0) {
        chain.push_back(nameless(frames[i].offset)->front());
      } else {
        chain.push_back(unknown(place, module, frames[i].offset, kNoDebugName)->front());
      }
      chain.back().file = clean_name(source[n].file);
      chain.back().line = source[n].line;
      chain.back().inlined = n != 0;
    }
    chains[i] = share(std::move(chain));
  }
}

ModuleSymbolizer::Lines ModuleSymbolizer::locate(std::span<const Frame> frames, Group group, const Loaded& loaded,
                                                 int file) {
  Lines lines{std::vector<SourceChain>(group.size())};
  if (file < 0 || !loaded.has_lines()) return lines;
  const ModuleId id = frames[group.front()].module;
  {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry != entries_.end() && entry->second.line_failures.retry_at &&
        clock_.monotonic() < *entry->second.line_failures.retry_at) {
      return lines;
    }
  }
  std::vector<std::uint64_t> offsets;
  for (const std::size_t i : group) {
    if (offsets.empty() || offsets.back() != frames[i].offset) offsets.push_back(frames[i].offset);
  }
  const MonotonicTime started = clock_.monotonic();
  Result<std::vector<SourceChain>> located = Error("not asked");
  try {
    located = reader_.locate({file, loaded.debug.debug.get(), loaded.debug.alternate.get()}, offsets);
  } catch (const std::exception& e) {
    located = Error(e.what());
  }
  const bool good = located.ok() && located->size() == offsets.size();
  {
    std::lock_guard lock(mutex_);
    stats_.located += offsets.size();
    stats_.locate_ns += clock_.monotonic().ns - started.ns;
    if (!good) ++stats_.failed_locates;
    if (const auto entry = entries_.find(id); entry != entries_.end()) {
      if (good) {
        entry->second.line_failures = {};
      } else {
        record_failure(entry->second.line_failures, located.ok() ? Error("not one for each") : located.error());
      }
    }
  }
  lines.pending = !located.ok() && located.error().code() == EAGAIN;
  if (!good) return lines;  // names are useful without lines
  std::size_t at = 0;
  for (std::size_t k = 0; k < group.size(); ++k) {
    while (offsets[at] != frames[group[k]].offset) ++at;
    lines.chains[k] = (*located)[at];
  }
  return lines;
}

void ModuleSymbolizer::name_jit(std::span<const Frame> frames, Group group, const Module& module, Chains& chains) {
  if (module.is_closed()) return name_closed(frames, group, module, "anon", "[anon]", chains);
  if (module.jit == nullptr) {
    for (const std::size_t i : group) {
      chains[i] = unknown("anon", "[anon]", frames[i].offset, kNotLookedFor, SymbolKind::kJit, /*pending=*/true);
    }
    return;
  }
  const JitSymbols::View view = jit_.view(*module.jit);
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> names;
  std::vector<std::size_t> name_of(group.size(), kNone);
  const char* last = nullptr;
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::optional<SymbolTable::Found> found = view.find(frames[group[k]].offset);
    if (!found) continue;
    if (found->name.data() != last) names.emplace_back(found->name);
    last = found->name.data();
    name_of[k] = names.size() - 1;
  }
  // Most compilers write source names; those based on LLVM may write linkage names.
  const std::vector<DemangledName> demangled = demangle(names);
  std::vector<SymbolChainPtr> named(names.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    const bool is_demangled = !demangled[n].name.empty();
    Symbol symbol{clean_name(is_demangled ? demangled[n].name : names[n]), "[jit]", SymbolKind::kJit, {}};
    symbol.pending = !is_demangled;
    named[n] = chain_of(std::move(symbol));
  }
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::size_t i = group[k];
    chains[i] = name_of[k] != kNone ? named[name_of[k]]
                                    : unknown("anon", "[anon]", frames[i].offset, view.why_none, SymbolKind::kJit);
  }
}

std::vector<DemangledName> ModuleSymbolizer::demangle(std::span<const std::string> names) {
  std::vector<DemangledName> shown(names.size());
  std::vector<std::string> mangled;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (may_be_mangled(names[i])) {
      mangled.push_back(names[i]);
      places.push_back(i);
    } else {
      shown[i].name = names[i];
    }
  }
  if (mangled.empty()) return shown;
  Result<std::vector<DemangledName>> demangled = reader_.demangle(mangled);
  // Otherwise one of them breaks the demangler, and would do so again.
  const bool is_broken = !demangled && demangled.error().code() != EAGAIN;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (demangled && i < demangled->size()) shown[places[i]] = std::move((*demangled)[i]);
    if (is_broken) shown[places[i]].name = std::move(mangled[i]);
  }
  return shown;
}

namespace {

MachineCode no_code(std::string_view reason) { return {clean_name(reason), {}}; }

/// The functions that have the places, each once. `has_all`: each place has one.
DisassemblyQuestion functions_at(const ElfSymbols& symbols, std::span<const std::uint64_t> offsets, bool& has_all) {
  DisassemblyQuestion question;
  has_all = true;
  for (const std::uint64_t offset : offsets) {
    const std::optional<CodeRange> function = symbols.function_at(offset);
    if (!function || function->end - function->start > DisassemblyQuestion::kMostBytes ||
        question.places.size() == DisassemblyQuestion::kMostPlaces) {
      has_all = false;
      continue;
    }
    // After a nested function, a function goes on.
    const auto known = std::find_if(question.functions.rbegin(), question.functions.rend(),
                                    [&](const CodeRange& other) { return other.start == function->start; });
    if (known != question.functions.rend()) {
      known->end = std::max(known->end, function->end);
    } else if (question.functions.size() < DisassemblyQuestion::kMostFunctions) {
      question.functions.push_back(*function);
    } else {
      has_all = false;
      continue;
    }
    question.places.push_back(offset);
  }
  const auto begins_earlier = [](const CodeRange& a, const CodeRange& b) { return a.start < b.start; };
  std::sort(question.functions.begin(), question.functions.end(), begins_earlier);
  return question;
}

}  // namespace

MachineCode ModuleSymbolizer::code_at(const CodeQuestion& question) {
  if (question.module == kKernelModule) return no_code("the kernel's code is in no file that is read");
  if (question.module == kVdsoModule) return no_code("the kernel maps this code into programs: it is in no file");
  if (question.module == kRuntimeModule) return no_code("a managed runtime runs it: it has lines, and no addresses");
  const ModulePtr module = modules_.find(question.module);
  if (module == nullptr) return no_code("its file is no longer known");
  if (module->kind == ModuleKind::kAnonymous) {
    return no_code("a just-in-time compiler made this code: it is in no file, and may be other code by now");
  }
  if (module->kind != ModuleKind::kFile) return no_code("it is in no file");
  if (module->is_closed()) {
    if (modules_.reopen(question.module)) {
      return no_code("its file was closed, and is being opened once more: ask again in some seconds");
    }
    return no_code(module->why_no_file.empty() ? kClosed : module->why_no_file);
  }
  if (!module->file) return no_code(module->why_no_file.empty() ? kNotOpen : module->why_no_file);

  const LoadedPtr loaded = this->loaded(module);
  if (!loaded->symbols.ok()) return no_code(loaded->symbols.error().message());
  bool has_all = true;
  const DisassemblyQuestion functions = functions_at(*loaded->symbols, question.offsets, has_all);
  if (functions.functions.empty()) return no_code("no function is known there, so where an instruction begins is not");
  Result<Disassembly> disassembly = reader_.disassemble(module->file.get(), functions);
  if (!disassembly) return no_code(disassembly.error().message());
  if (disassembly->build_id != question.build_id) {
    return no_code("the file has another build-id than the code that was sampled: something has written to it");
  }
  MachineCode code{{}, std::move(disassembly->functions)};
  const auto is_empty = [](const FunctionCode& function) { return function.instructions.empty(); };
  if (std::any_of(code.functions.begin(), code.functions.end(), is_empty)) has_all = false;
  std::erase_if(code.functions, is_empty);
  if (!has_all) code.reason = "not all of it is in a function that is known, or it is too much to read";
  return code;
}

const ModuleSymbolizer::Loaded& ModuleSymbolizer::vdso() {
  std::call_once(vdso_once_, [&] { vdso_ = std::make_shared<const Loaded>(Loaded{read_vdso_symbols()}); });
  return *vdso_;
}

bool ModuleSymbolizer::Loaded::has_lines() const {
  return facts.has_debug_info || debug.debug_facts.has_debug_info || facts.is_go;
}

bool ModuleSymbolizer::Loaded::may_improve() const {
  const bool can_be_found = !facts.build_id.empty() || !facts.debug_link.empty();
  const bool lacks_symbols = !facts.has_symtab && !debug.debug_facts.has_symtab;
  const bool lacks_lines = !facts.has_debug_info && !debug.debug_facts.has_debug_info;
  const bool names_alternate = !facts.alternate_link.empty() || !debug.debug_facts.alternate_link.empty();
  return symbols.ok() && ((can_be_found && (lacks_symbols || lacks_lines)) || (names_alternate && !debug.alternate));
}

std::size_t ModuleSymbolizer::Loaded::bytes() const {
  return sizeof(Entry) + sizeof(Loaded) + remedy.capacity() +
         (symbols.ok() ? symbols->bytes() : symbols.error().message().size());
}

ModuleSymbolizer::LoadedPtr ModuleSymbolizer::loaded(const ModulePtr& module) {
  std::promise<LoadedPtr> promise;
  std::shared_future<LoadedPtr> loaded;
  std::optional<std::uint64_t> my_load;
  {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[module->id];
    if (!same_module(entry.module, module)) {
      drop_locked(entry);
      // The module still needs a debug file.
      Entry anew;
      anew.watch = std::move(entry.watch);
      anew.module = module;
      entry = std::move(anew);
    }
    const std::optional<MonotonicTime>& retry_at = entry.load_failures.retry_at;
    const bool retry = retry_at && clock_.monotonic() >= *retry_at;
    if (!entry.loaded.valid() || retry) {
      drop_locked(entry);
      entry.loaded = promise.get_future().share();
      entry.load = ++stats_.loads;
      my_load = entry.load;
    }
    entry.last_used = ++uses_;
    loaded = entry.loaded;
  }
  if (!my_load) return loaded.get();

  const MonotonicTime started = clock_.monotonic();
  LoadedPtr mine = load(module);
  promise.set_value(mine);
  settle(module->id, *my_load, mine, clock_.monotonic().ns - started.ns);
  return mine;
}

ModuleSymbolizer::LoadedPtr ModuleSymbolizer::loaded_already(ModuleId id) {
  const ModulePtr module = modules_.find(id);
  if (module == nullptr || module->kind != ModuleKind::kFile) return nullptr;
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || !same_module(entry->second.module, module) || !entry->second.loaded.valid() ||
      entry->second.loaded.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return nullptr;
  }
  entry->second.last_used = ++uses_;
  return entry->second.loaded.get();
}

DebugFiles ModuleSymbolizer::find_debug_files(const Module& module, const FileOwner& owner, const ElfFacts& facts) {
  return debug_files_.find({module.path, facts, modules_.process_of(module.id), owner});
}

ModuleSymbolizer::LoadedPtr ModuleSymbolizer::load(const ModulePtr& module) {
  // Others wait for the promise, so it must get a value in any case.
  try {
    Result<ElfFacts> facts = reader_.inspect(module->file.get());
    if (!facts) return std::make_shared<const Loaded>(Loaded{std::move(facts).error()});
    const FileOwner owner = owner_of(module->file.get());
    DebugFiles debug = find_debug_files(*module, owner, *facts);
    Result<ElfSymbols> symbols = reader_.read_symbols({module->file.get(), debug.debug.get(), debug.alternate.get()});
    const bool is_stripped = symbols && symbols->has_unnamed() && !facts->has_symtab && !debug.debug;
    std::string remedy = is_stripped ? remedy_for(*module, *facts, debug.pending) : std::string();
    return std::make_shared<const Loaded>(
        Loaded{std::move(symbols), std::move(facts).value(), std::move(debug), owner, std::move(remedy)});
  } catch (const std::exception& e) {
    return std::make_shared<const Loaded>(Loaded{Error(std::string("cannot read the symbols: ") + e.what())});
  }
}

std::string ModuleSymbolizer::remedy_for(const Module& module, const ElfFacts& facts, bool is_fetched) const {
  std::string package;
  struct stat mapped {};
  struct stat installed {};
  // A container's file may have the path of another one of the host.
  if (options_.packages != nullptr && ::fstat(module.file.get(), &mapped) == 0) {
    package = options_.packages->owner_of(module.path);
    const bool is_same = !package.empty() && ::stat(module.path.c_str(), &installed) == 0 &&
                         mapped.st_dev == installed.st_dev && mapped.st_ino == installed.st_ino;
    if (!is_same) package.clear();
  }
  std::string remedy = "; ";
  if (!package.empty()) {
    remedy += "apt install " + package + "-dbgsym (of some packages " + package + "-dbg)";
  } else if (!facts.build_id.empty()) {
    remedy += "install the debug symbols of build-id " + facts.build_id;
  } else {
    remedy += "build it without stripping";
  }
  if (!facts.build_id.empty() && !is_fetched) {
    remedy += options_.asks_debug_servers ? "; the servers in debuginfod have none" : ", or set debuginfod";
  }
  return remedy;
}

void ModuleSymbolizer::record_failure(Failures& failures, const Error& error) {
  failures.retry_at = clock_.monotonic();
  if (error.code() == EAGAIN) return;
  const std::size_t pause = std::min(failures.count++, options_.retry_failed_after_ns.size() - 1);
  failures.retry_at->ns += options_.retry_failed_after_ns[pause];
}

void ModuleSymbolizer::settle(ModuleId id, std::uint64_t load, const LoadedPtr& loaded, std::int64_t took_ns) {
  std::lock_guard lock(mutex_);
  stats_.load_ns += took_ns;
  const bool good = loaded->symbols.ok();
  if (good) {
    ++stats_.loads_from[static_cast<std::size_t>(loaded->symbols->source())];
    if (loaded->debug.debug) ++stats_.debug_files_found;
    if (!loaded->debug.debug && loaded->may_improve()) ++stats_.debug_files_missed;
  } else {
    ++stats_.failed_loads;
  }
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.load != load) return;
  Entry& entry = found->second;
  entry.bytes = loaded->bytes();
  entry.debug_files = std::size_t{loaded->debug.debug ? 1U : 0U} + std::size_t{loaded->debug.alternate ? 1U : 0U};
  entry.pending = loaded->debug.pending;
  entry.watch.reset();
  if (good) {
    entry.load_failures = {};
  } else {
    record_failure(entry.load_failures, loaded->symbols.error());
  }
  if (loaded->may_improve()) {
    entry.watch = Entry::Watch{loaded->facts, loaded->owner, static_cast<bool>(loaded->debug.debug),
                               static_cast<bool>(loaded->debug.alternate), clock_.monotonic()};
  }
  stats_.table_bytes += entry.bytes;
  open_debug_files_ += entry.debug_files;
  evict_locked();
}

std::vector<ModuleId> ModuleSymbolizer::renewed(std::span<const ModuleId> modules) {
  struct Due {
    ModulePtr module;
    Entry::Watch watch;
  };
  std::vector<Due> due;
  {
    std::lock_guard lock(mutex_);
    const MonotonicTime now = clock_.monotonic();
    for (const ModuleId id : modules) {
      const auto found = entries_.find(id);
      if (found == entries_.end() || !found->second.watch) continue;
      Entry& entry = found->second;
      find_again_locked(id, entry);
      // A file that is being fetched may be there at the next query.
      if (!entry.pending && now.ns - entry.watch->looked_at.ns < options_.look_again_after_ns) continue;
      entry.watch->looked_at = now;
      if (ModulePtr module = entry.module.lock()) due.push_back({std::move(module), *entry.watch});
    }
  }
  std::vector<ModuleId> renewed;
  for (const Due& candidate : due) {
    const DebugFiles files = find_debug_files(*candidate.module, candidate.watch.owner, candidate.watch.facts);
    const bool has_more =
        (files.debug && !candidate.watch.has_debug) || (files.alternate && !candidate.watch.has_alternate);
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(candidate.module->id);
    if (found == entries_.end() || !same_module(found->second.module, candidate.module)) continue;
    // A search that ended without a file makes the answers given meanwhile final: they can be kept.
    const bool ended = found->second.pending && !files.pending;
    if (!has_more && !ended) continue;
    if (candidate.module->is_closed()) {
      // Then it is a new Module value, and the debug file is searched again.
      found->second.pending = has_more && modules_.reopen(candidate.module->id);
      continue;
    }
    drop_locked(found->second);
    renewed.push_back(candidate.module->id);
  }
  return renewed;
}

/// The module may have been closed or opened since: then it is a new Module value.
void ModuleSymbolizer::find_again_locked(ModuleId id, Entry& entry) {
  if (!entry.watch || !entry.module.expired()) return;
  if (const ModulePtr now = modules_.find(id); now != nullptr && (now->file || now->is_closed())) entry.module = now;
}

/// Drops the table, but keeps the module's other data.
void ModuleSymbolizer::drop_locked(Entry& entry) {
  stats_.table_bytes -= entry.bytes;
  open_debug_files_ -= entry.debug_files;
  entry.bytes = 0;
  entry.debug_files = 0;
  entry.loaded = {};
  entry.load_failures.retry_at.reset();
}

void ModuleSymbolizer::evict_locked() {
  // Modules that are in no stored stack any more are not needed again.
  for (auto it = entries_.begin(); it != entries_.end();) {
    const bool loading = it->second.loaded.valid() && it->second.bytes == 0;
    if (!loading && it->second.module.expired()) {
      drop_locked(it->second);
      find_again_locked(it->first, it->second);
    }
    if (!loading && it->second.module.expired()) {
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  const auto drop_oldest = [&](bool with_debug_files) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.bytes == 0) continue;  // no table, or still being read
      if (with_debug_files && it->second.debug_files == 0) continue;
      if (oldest == entries_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
    }
    if (oldest == entries_.end()) return false;
    drop_locked(oldest->second);
    ++stats_.evictions;
    return true;
  };
  while (stats_.table_bytes > options_.table_budget_bytes && drop_oldest(false)) {
  }
  while (open_debug_files_ > options_.max_open_debug_files && drop_oldest(true)) {
  }
}

std::size_t ModuleSymbolizer::free_closed() {
  std::lock_guard lock(mutex_);
  const std::size_t before = stats_.table_bytes;
  evict_locked();
  return before - stats_.table_bytes;
}

ModuleSymbolizer::Stats ModuleSymbolizer::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.tables = static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second.bytes != 0; }));
  return stats;
}

}  // namespace flamed::symbolizer
