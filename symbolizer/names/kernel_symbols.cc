// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/kernel_symbols.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <limits>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/handle.h"
#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

// 122 k symbols are 5 MB; a kernel with all modules loaded is far below this.
constexpr std::size_t kMaxFileBytes = std::size_t{128} << 20;
constexpr std::uint32_t kMaxTableNameBytes = std::uint32_t{64} << 20;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::string_view kKernelName = "[kernel]";
constexpr std::string_view kBpfName = "[bpf]";

struct Line {
  std::uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;  ///< with its brackets; "[kernel]" if the line has none
};

/// "bpf_prog_<tag: 16 hex digits>" or "bpf_prog_<tag>_<name>", see bpf_get_prog_name() in kernel/bpf/core.c.
bool is_bpf_program(std::string_view name) {
  constexpr std::string_view kPrefix = "bpf_prog_";
  constexpr std::size_t kTagEnd = kPrefix.size() + 16;
  if (name.size() < kTagEnd || name.substr(0, kPrefix.size()) != kPrefix) return false;
  if (name.substr(0, kTagEnd).find_first_not_of("0123456789abcdef", kPrefix.size()) != std::string_view::npos) {
    return false;
  }
  return name.size() == kTagEnd || name[kTagEnd] == '_';
}

/// "<hex address> <type> <name>[\t[<module>]]", see s_show() in kernel/kallsyms.c.
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, line.address, 16);
  if (error != std::errc() || end - after < 4 || after[0] != ' ' || after[2] != ' ') return std::nullopt;
  line.type = after[1];
  std::string_view rest(after + 3, static_cast<std::size_t>(end - after - 3));
  const std::size_t name_end = std::min(rest.find_first_of("\t "), rest.size());
  line.name = rest.substr(0, name_end);
  rest.remove_prefix(name_end);
  const std::size_t open = rest.find('[');
  line.module = open == std::string_view::npos ? kKernelName : rest.substr(open, rest.find(']', open) - open + 1);
  if (line.name.empty()) return std::nullopt;
  // BPF programs have no module on kernels that list them with the core image.
  if (line.module == kKernelName && is_bpf_program(line.name)) line.module = kBpfName;
  return line;
}

bool is_text(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

SymbolBinding binding_of(char type) {
  if (type == 'T') return SymbolBinding::kGlobal;
  return type == 't' ? SymbolBinding::kLocal : SymbolBinding::kWeak;
}

/// The compiler adds a symbol for the padding (__pfx_) or the CFI check (__cfi_) before a function's entry: half of all
/// symbols, and useless for people. They get the function's own name, which merges the two ranges.
std::string_view without_entry_prefix(std::string_view name) {
  for (const std::string_view prefix : {"__pfx_", "__cfi_"}) {
    if (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix) return name.substr(prefix.size());
  }
  return name;
}

constexpr const char* kNoSymbols = "/proc/kallsyms has no symbols (a kernel without CONFIG_KALLSYMS?)";
constexpr const char* kHidden =
    "/proc/kallsyms shows every address as zero: with sysctl kernel.kptr_restrict at 0 or 1, flamed needs CAP_SYSLOG "
    "or "
    "to be handed the file (systemd: StandardInput=file:/proc/kallsyms); at 2 the kernel hides addresses from everyone";

}  // namespace

Result<KallsymsTable> parse_kallsyms(std::string_view text, std::vector<KernelFunction> bpf_functions) {
  std::vector<Line> lines;
  bool any_line = false;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::optional<Line> line = parse_line(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (!line) continue;
    any_line = true;
    // Percpu symbols of old kernels have small "addresses", which are offsets and not code.
    if (line->address != 0) lines.push_back(*line);
  }
  if (!any_line) return Error(kNoSymbols);
  if (lines.empty()) return Error(kHidden);
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.address < b.address; });

  const auto by_start = [](const KernelFunction& a, const KernelFunction& b) { return a.start < b.start; };
  std::sort(bpf_functions.begin(), bpf_functions.end(), by_start);
  const auto bpf_bytes = [&](std::uint64_t start) -> std::uint64_t {
    const auto found = std::lower_bound(bpf_functions.begin(), bpf_functions.end(), KernelFunction{start, 0}, by_start);
    return found == bpf_functions.end() || found->start != start ? 0 : found->bytes;
  };

  KallsymsTable table;
  SymbolTable::Builder builder(kMaxTableNameBytes);
  std::map<std::string_view, std::uint32_t> module_ids;
  for (std::size_t first = 0; first < lines.size();) {
    const std::uint64_t address = lines[first].address;
    std::size_t next = first;
    while (next < lines.size() && lines[next].address == address) ++next;
    const std::uint64_t next_address =
        next < lines.size() ? lines[next].address : std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = first; i < next; ++i) {
      const Line& line = lines[i];
      if (!is_text(line.type) || line.name.front() == '$') continue;  // "$x": ARM's mapping symbols
      std::uint64_t end = next_address;
      const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - address;
      const std::uint64_t bytes = line.module == kBpfName ? bpf_bytes(address) : 0;
      if (bytes != 0) {
        end = std::min(end, address + std::min(room, bytes));
      } else if (next == lines.size() || lines[next].module != line.module) {
        // If the next symbol is of another module, there may be a hole between: don't extend the function over it.
        const std::uint64_t to_page_end = kPageBytes - address % kPageBytes;
        end = std::min(end, address + std::min(room, to_page_end + kPageBytes));
      }
      builder.add(address, end - address, end, binding_of(line.type), without_entry_prefix(line.name));
      const auto [id, is_new] = module_ids.try_emplace(line.module, static_cast<std::uint32_t>(table.modules_.size()));
      if (is_new) table.modules_.push_back(clean_name(line.module, 256));
      if (table.runs_.empty() || table.runs_.back().module != id->second) table.runs_.push_back({address, id->second});
    }
    first = next;
  }
  Result<SymbolTable> symbols = std::move(builder).build();
  if (!symbols) return std::move(symbols).error().with_context("/proc/kallsyms");
  if (symbols->empty()) return Error("/proc/kallsyms lists no functions");
  table.symbols_ = std::move(symbols).value();
  table.runs_.shrink_to_fit();
  return table;
}

std::vector<std::uint64_t> find_kallsyms(std::string_view text, const std::vector<std::string_view>& names) {
  std::vector<std::uint64_t> addresses(names.size());
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::optional<Line> line = parse_line(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (!line || line->module != kKernelName) continue;
    const auto found = std::find(names.begin(), names.end(), line->name);
    if (found != names.end()) addresses[static_cast<std::size_t>(found - names.begin())] = line->address;
  }
  return addresses;
}

std::optional<KallsymsTable::Found> KallsymsTable::find(std::uint64_t address) const {
  const std::optional<SymbolTable::Found> symbol = symbols_.find(address);
  if (!symbol) return std::nullopt;
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), address,
                                      [](std::uint64_t wanted, const Run& run) { return wanted < run.start; });
  if (after == runs_.begin()) return std::nullopt;
  return Found{symbol->name, modules_[std::prev(after)->module], symbol->offset};
}

std::size_t KallsymsTable::bytes() const {
  std::size_t bytes = sizeof(*this) + symbols_.bytes() + runs_.capacity() * sizeof(Run);
  for (const std::string& module : modules_) bytes += sizeof(std::string) + module.capacity();
  return bytes;
}

KernelSymbols::KernelSymbols(const Clock& clock) : KernelSymbols(clock, Options()) {}
KernelSymbols::KernelSymbols(const Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {}

Status KernelSymbols::load() {
  std::lock_guard lock(load_mutex_);
  return load_locked();
}

Result<std::string> KernelSymbols::read_text() const {
  if (!options_.file) return read_file(options_.path, kMaxFileBytes);
  // One thread at a time, and check() does not change the position.
  if (::lseek(options_.file.get(), 0, SEEK_SET) != 0) return Error::from_errno("lseek " + options_.path);
  return read_fd(options_.file.get(), kMaxFileBytes);
}

bool KernelSymbols::is_in_image(std::uint64_t address) {
  if (table() == nullptr) reload_after(options_.min_reload_interval_ns);
  const TablePtr current = table();
  if (current == nullptr) return true;
  const std::optional<KallsymsTable::Found> found = current->find(address);
  return found && found->module == kKernelName;
}

Result<std::vector<std::uint64_t>> KernelSymbols::addresses(const std::vector<std::string_view>& names) {
  const std::lock_guard lock(load_mutex_);
  const Result<std::string> text = read_text();
  if (!text) return Error(text.error());
  return find_kallsyms(*text, names);
}

Status KernelSymbols::check() const {
  const Fd opened(options_.file ? -1 : ::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened && !options_.file) return Error::from_errno("open " + options_.path);
  std::array<char, kPageBytes> text{};
  const ssize_t size = ::pread(opened ? opened.get() : options_.file.get(), text.data(), text.size(), 0);
  if (size < 0) return Error::from_errno("read " + options_.path);
  // If addresses are shown, only the first few percpu symbols, which come first, are at 0.
  std::string_view lines(text.data(), static_cast<std::size_t>(size));
  lines = lines.substr(0, lines.rfind('\n') + 1);
  bool any_line = false;
  while (!lines.empty()) {
    const std::size_t newline = lines.find('\n');
    const std::optional<Line> line = parse_line(lines.substr(0, newline));
    lines.remove_prefix(newline + 1);
    if (line && line->address != 0) return {};
    any_line = any_line || line;
  }
  return Error(any_line ? kHidden : kNoSymbols);
}

Status KernelSymbols::load_locked() {
  Result<KallsymsTable> loaded = [&]() -> Result<KallsymsTable> {
    try {
      Result<std::string> text = read_text();
      if (!text) return std::move(text).error();
      programs_ = read_programs();
      return parse_kallsyms(*text, programs_);
    } catch (const std::exception& e) {
      return Error(std::string("reading /proc/kallsyms: ") + e.what());
    }
  }();

  std::lock_guard lock(mutex_);
  loaded_at_ = compared_at_ = clock_.monotonic();
  ++stats_.loads;
  if (!loaded) {
    ++stats_.failed_loads;
    error_ = clean_name(loaded.error().message());
    return std::move(loaded).error();
  }
  error_.clear();
  table_ = std::make_shared<const KallsymsTable>(std::move(loaded).value());
  stats_.symbols = table_->size();
  stats_.bytes = table_->bytes();
  return {};
}

void KernelSymbols::reload_after(std::int64_t interval_ns) {
  std::lock_guard lock(load_mutex_);
  {
    std::lock_guard inner(mutex_);
    if (loaded_at_ && clock_.monotonic().ns - loaded_at_->ns < interval_ns) return;
  }
  static_cast<void>(load_locked());  // the reason is kept in error_
}

std::vector<KernelFunction> KernelSymbols::read_programs() const {
  std::vector<KernelFunction> programs;
  if (options_.bpf_functions) programs = options_.bpf_functions();
  std::sort(programs.begin(), programs.end());
  return programs;
}

void KernelSymbols::reload_for_programs() {
  const std::lock_guard lock(load_mutex_);
  {
    const std::lock_guard inner(mutex_);
    const MonotonicTime now = clock_.monotonic();
    if (compared_at_ && now.ns - compared_at_->ns < options_.min_reload_interval_ns) return;
    compared_at_ = now;
  }
  if (read_programs() != programs_) static_cast<void>(load_locked());  // the reason is kept in error_
}

KernelSymbols::TablePtr KernelSymbols::table() const {
  std::lock_guard lock(mutex_);
  return table_;
}

Result<KernelSymbols::Name> KernelSymbols::find(std::uint64_t address) {
  const auto look_up = [&](const TablePtr& from) -> std::optional<Name> {
    if (!from) return std::nullopt;
    const std::optional<KallsymsTable::Found> found = from->find(address);
    if (!found) return std::nullopt;
    return Name{clean_name(found->name), std::string(found->module), found->offset};
  };

  const bool stale = [&] {
    std::lock_guard lock(mutex_);
    return !loaded_at_ || clock_.monotonic().ns - loaded_at_->ns >= options_.max_age_ns;
  }();
  if (stale) reload_after(options_.max_age_ns);
  std::optional<Name> name = look_up(table());
  if (name && name->module == kBpfName) {
    reload_for_programs();
    name = look_up(table());
  }
  if (name) return std::move(*name);

  // Only the upper half of the address space is the kernel's: the file is not read again for an invalid address.
  if (address >> 63 != 0) {
    reload_after(options_.min_reload_interval_ns);
    name = look_up(table());
    if (name) return std::move(*name);
  }
  std::lock_guard lock(mutex_);
  if (!error_.empty()) return Error(error_);
  return Error("no kernel symbol covers this address (a module or BPF program that was unloaded?)");
}

KernelSymbols::Stats KernelSymbols::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace flamed::symbolizer
