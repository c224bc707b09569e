// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/module_symbolizer.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "symbolizer/clean_name.h"
#include "symbolizer/vdso_symbols.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kNoSymbol = "no symbol covers this address (stripped?)";
constexpr const char* kNotLookedFor = "no file behind this memory; what may name it has not been looked for yet";
constexpr const char* kNotOpen = "the file is not open";
constexpr const char* kForgotten = "the module is no longer known";

std::string hex(std::uint64_t value) {
  char digits[16];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value, 16);
  static_cast<void>(error);  // 16 digits hold any value
  return "0x" + std::string(digits, end);
}

SymbolChainPtr chain_of(Symbol symbol) {
  SymbolChain chain;
  chain.push_back(std::move(symbol));
  return std::make_shared<const SymbolChain>(std::move(chain));
}

/// `place` stands before the offset in the name: "libc.so.6", "kernel".
SymbolChainPtr unknown(std::string_view place, std::string module, std::uint64_t offset, std::string_view reason,
                       SymbolKind kind = SymbolKind::kUnknown, bool pending = false) {
  std::string name = "[unknown] (";
  name += place;
  name += '+';
  name += hex(offset);
  name += ')';
  return chain_of({std::move(name), std::move(module), kind, clean_name(reason), pending});
}

/// "/usr/lib/libfoo.so.1 (deleted)" -> "libfoo.so.1".
std::string display_name(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  constexpr std::size_t kMaxBytes = 255;  // NAME_MAX
  if (path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted) {
    path.remove_suffix(kDeleted.size());
  }
  path = path.substr(path.find_last_of('/') + 1);
  return path.empty() ? "[file]" : clean_name(path, kMaxBytes);
}

bool same_module(const std::weak_ptr<const Module>& a, const ModulePtr& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ModuleSymbolizer::ModuleSymbolizer(const Modules& modules, KernelSymbols& kernel, ModuleReader& reader,
                                   const Clock& clock)
    : ModuleSymbolizer(modules, kernel, reader, clock, Options()) {}

ModuleSymbolizer::ModuleSymbolizer(const Modules& modules, KernelSymbols& kernel, ModuleReader& reader,
                                   const Clock& clock, Options options)
    : modules_(modules),
      kernel_(kernel),
      reader_(reader),
      clock_(clock),
      options_(options),
      jit_(reader, clock, {options.table_budget_bytes}) {}

std::vector<SymbolChainPtr> ModuleSymbolizer::symbolise(std::span<const Frame> frames) {
  Chains chains(frames.size());
  std::vector<std::size_t> order(frames.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return frames[a] < frames[b]; });
  for (std::size_t first = 0; first < order.size();) {
    std::size_t next = first;
    while (next < order.size() && frames[order[next]].module == frames[order[first]].module) ++next;
    name_group(frames, Group(order).subspan(first, next - first), chains);
    first = next;
  }
  return chains;
}

void ModuleSymbolizer::name_group(std::span<const Frame> frames, Group group, Chains& chains) {
  const ModuleId id = frames[group.front()].module;
  const auto all_unknown = [&](std::string_view place, const std::string& module, std::string_view reason,
                               SymbolKind kind = SymbolKind::kUnknown) {
    for (const std::size_t i : group) chains[i] = unknown(place, module, frames[i].offset, reason, kind);
  };
  if (id == kKernelModule) return name_kernel(frames, group, chains);
  if (id == kVdsoModule) return name_elf(frames, group, vdso(), "[vdso]", SymbolKind::kVdso, chains);
  if (id == kNoModule) return all_unknown("no module", "[unknown]", "no mapping covered this address");
  if (id == kTruncatedModule) {
    for (const std::size_t i : group) {
      chains[i] =
          chain_of({"[truncated]", "[truncated]", SymbolKind::kUnknown, "the stack could not be walked further"});
    }
    return;
  }

  const ModulePtr module = modules_.find(id);
  if (module == nullptr) return all_unknown("module " + std::to_string(id.value), "[unknown]", kForgotten);
  switch (module->kind) {
    case ModuleKind::kKernel:
      return name_kernel(frames, group, chains);
    case ModuleKind::kVdso:
      return name_elf(frames, group, vdso(), "[vdso]", SymbolKind::kVdso, chains);
    case ModuleKind::kAnonymous:
      return name_jit(frames, group, *module, chains);
    case ModuleKind::kFile:
      break;
  }
  const std::string name = display_name(module->path);
  if (!module->file) {
    // The `modules` thread opens it, or tries again; looking here once more costs nothing.
    for (const std::size_t i : group) {
      const std::string_view why = module->why_no_file.empty() ? kNotOpen : std::string_view(module->why_no_file);
      chains[i] = unknown(name, name, frames[i].offset, why, SymbolKind::kUnknown, /*pending=*/true);
    }
    return;
  }
  name_elf(frames, group, *table_of(module), name, SymbolKind::kNative, chains);
}

void ModuleSymbolizer::name_kernel(std::span<const Frame> frames, Group group, Chains& chains) {
  for (const std::size_t i : group) {
    Result<KernelSymbols::Name> found = kernel_.find(frames[i].offset);
    if (found.ok()) {
      // The parts of the kernel that are written in Rust carry v0 names.
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

void ModuleSymbolizer::name_elf(std::span<const Frame> frames, Group group, const Table& table,
                                const std::string& module, SymbolKind kind, Chains& chains) {
  const std::string_view place = kind == SymbolKind::kVdso ? std::string_view("vdso") : std::string_view(module);
  if (!table.ok()) {
    for (const std::size_t i : group) chains[i] = unknown(place, module, frames[i].offset, table.error().message());
    return;
  }
  // The group is in order of offset, so the addresses of one function stand together, share a chain, and cost one
  // demangling.
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> mangled;
  std::vector<std::size_t> name_of(group.size(), kNone);
  const char* last = nullptr;
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::optional<SymbolTable::Found> found = table->find(frames[group[k]].offset);
    if (!found) continue;
    if (found->name.data() != last) mangled.emplace_back(found->name);
    last = found->name.data();
    name_of[k] = mangled.size() - 1;
  }

  const std::vector<DemangledName> names = demangle(mangled);
  std::vector<SymbolChainPtr> named(names.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::string& shown = names[n].name.empty() ? mangled[n] : names[n].name;
    named[n] = chain_of({clean_name(shown), module, kind, {}});
  }
  const char* reason = table->source() == ElfSymbols::Source::kDynsym
                           ? "no symbol covers this address (stripped? only dynamic symbols are left)"
                           : kNoSymbol;
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::size_t i = group[k];
    chains[i] = name_of[k] != kNone ? named[name_of[k]] : unknown(place, module, frames[i].offset, reason);
  }
}

void ModuleSymbolizer::name_jit(std::span<const Frame> frames, Group group, const Module& module, Chains& chains) {
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
  // Most compilers write names as people know them; those that are built on LLVM write what its linker would see.
  const std::vector<DemangledName> demangled = demangle(names);
  std::vector<SymbolChainPtr> named(names.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::string& shown = demangled[n].name.empty() ? names[n] : demangled[n].name;
    named[n] = chain_of({clean_name(shown), "[jit]", SymbolKind::kJit, {}});
  }
  for (std::size_t k = 0; k < group.size(); ++k) {
    const std::size_t i = group[k];
    chains[i] = name_of[k] != kNone ? named[name_of[k]]
                                    : unknown("anon", "[anon]", frames[i].offset, view.why_none, SymbolKind::kJit);
  }
}

std::vector<DemangledName> ModuleSymbolizer::demangle(std::span<const std::string> mangled) {
  std::vector<DemangledName> names;
  if (!mangled.empty()) {
    if (Result<std::vector<DemangledName>> demangled = reader_.demangle(mangled)) names = std::move(demangled).value();
  }
  names.resize(mangled.size());
  return names;
}

const ModuleSymbolizer::Table& ModuleSymbolizer::vdso() {
  std::call_once(vdso_once_, [&] { vdso_ = std::make_shared<const Table>(read_vdso_symbols()); });
  return *vdso_;
}

ModuleSymbolizer::TablePtr ModuleSymbolizer::table_of(const ModulePtr& module) {
  std::promise<TablePtr> promise;
  std::shared_future<TablePtr> table;
  std::optional<std::uint64_t> my_load;
  {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[module->id];
    const bool retry = entry.failed_at && clock_.monotonic().ns - entry.failed_at->ns >= options_.retry_failed_after_ns;
    if (!entry.table.valid() || !same_module(entry.module, module) || retry) {
      stats_.table_bytes -= entry.bytes;
      entry = Entry();
      entry.module = module;
      entry.table = promise.get_future().share();
      entry.load = ++stats_.loads;
      my_load = entry.load;
    }
    entry.last_used = ++uses_;
    table = entry.table;
  }
  if (!my_load) return table.get();

  const MonotonicTime started = clock_.monotonic();
  TablePtr loaded = load(*module);
  promise.set_value(loaded);
  settle(module->id, *my_load, loaded, clock_.monotonic().ns - started.ns);
  return loaded;
}

ModuleSymbolizer::TablePtr ModuleSymbolizer::load(const Module& module) {
  // Others wait on the promise, so this must come back with a value whatever happens.
  try {
    return std::make_shared<const Table>(reader_.read_symbols({module.file.get()}));
  } catch (const std::exception& e) {
    return std::make_shared<const Table>(Error(std::string("cannot read the symbols: ") + e.what()));
  }
}

void ModuleSymbolizer::settle(ModuleId id, std::uint64_t load, const TablePtr& table, std::int64_t took_ns) {
  std::lock_guard lock(mutex_);
  stats_.load_ns += took_ns;
  if (!table->ok()) ++stats_.failed_loads;
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.load != load) return;
  Entry& entry = found->second;
  entry.bytes = sizeof(Entry) + sizeof(Table) + (table->ok() ? (*table)->bytes() : table->error().message().size());
  if (!table->ok()) entry.failed_at = clock_.monotonic();
  stats_.table_bytes += entry.bytes;
  evict_locked();
}

void ModuleSymbolizer::evict_locked() {
  // Tables of modules that no stored stack names any more can't be asked for again.
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->second.bytes != 0 && it->second.module.expired()) {
      stats_.table_bytes -= it->second.bytes;
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  while (stats_.table_bytes > options_.table_budget_bytes) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.bytes == 0) continue;  // still being read
      if (oldest == entries_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
    }
    if (oldest == entries_.end()) return;
    stats_.table_bytes -= oldest->second.bytes;
    entries_.erase(oldest);
    ++stats_.evictions;
  }
}

ModuleSymbolizer::Stats ModuleSymbolizer::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.tables = entries_.size();
  return stats;
}

}  // namespace flamed::symbolizer
