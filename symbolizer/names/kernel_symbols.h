// SPDX-License-Identifier: Apache-2.0
//
// KernelSymbols: names for kernel addresses, from /proc/kallsyms: the kernel's own functions, those of loaded modules,
// BPF programs and trampolines. Any thread. The clock must outlive it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/model/symbol_table.h"

namespace flamed::symbolizer {

/// The address range of the machine code of a BPF program's function.
struct KernelFunction {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint32_t program = 0;  ///< its id, which no other program has had since boot

  friend auto operator<=>(const KernelFunction&, const KernelFunction&) = default;
};

/// One reading of /proc/kallsyms. Immutable.
class KallsymsTable {
 public:
  struct Found {
    std::string_view name;
    std::string_view module;   ///< "[kernel]", "[nf_tables]", "[bpf]"
    std::uint64_t offset = 0;  ///< from the function's start
  };
  /// The result is valid as long as the table.
  [[nodiscard]] std::optional<Found> find(std::uint64_t address) const;

  [[nodiscard]] std::size_t size() const { return symbols_.size(); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  friend Result<KallsymsTable> parse_kallsyms(std::string_view text, std::vector<KernelFunction> bpf_functions);
  /// From `start` on, until the next run, functions belong to modules_[module].
  struct Run {
    std::uint64_t start;
    std::uint32_t module;
  };
  SymbolTable symbols_;
  std::vector<Run> runs_;
  std::vector<std::string> modules_;
};

/// Parses "ffffffff81000000 T _text" and "ffffffffc0201000 t nft_do_chain\t[nf_tables]" lines. Lines of another shape
/// are skipped. kallsyms has no sizes: a function ends at the next symbol of any kind, and a BPF program at its end in
/// `bpf_functions`. Before a gap, programs that are not listed there end after two pages at most. Fails if nothing is
/// left, and names the setting that hides the addresses if all of them are zero.
Result<KallsymsTable> parse_kallsyms(std::string_view text, std::vector<KernelFunction> bpf_functions = {});

/// Addresses of the kernel's own symbols of these names, functions or not, in the order of the names; 0 for missing
/// ones.
std::vector<std::uint64_t> find_kallsyms(std::string_view text, const std::vector<std::string_view>& names);

class KernelSymbols {
 public:
  struct Options {
    std::string path = "/proc/kallsyms";
    /// If open, read instead of the path: the rights of the process that opened it decide whether it shows addresses,
    /// so a service manager can pass on more than this process may see. The kernel decides this at open: after a change
    /// of kernel.kptr_restrict a new descriptor is needed.
    Fd file{};
    /// An address without a name may belong to a module or BPF program that was loaded since; reading the file again
    /// takes tens of milliseconds, so not more often than this.
    std::int64_t min_reload_interval_ns = 30 * kNsPerSecond;
    /// Addresses of unloaded modules and BPF programs are reused, so names expire.
    std::int64_t max_age_ns = 10 * kNsPerMinute;
    /// Returns the functions of BPF programs, none if the kernel does not tell. Called at each reading of the file, and
    /// before a program is named, at most once in `min_reload_interval_ns`: if others are loaded now, names expire at
    /// once. Not called by two threads at once.
    std::function<std::vector<KernelFunction>()> bpf_functions{};
  };

  explicit KernelSymbols(const Clock& clock);
  KernelSymbols(const Clock& clock, Options options);

  /// Reads the file now. find() does so by itself when needed; a call at the start reports problems early.
  Status load();

  /// Checks whether the kernel shows flamed its addresses; if not, why, and what to do. Reads a page of the file; any
  /// thread.
  [[nodiscard]] Status check() const;

  struct Name {
    std::string name;
    std::string module;
    std::uint64_t offset = 0;
  };
  /// The function at `address`, or why there is none, for people.
  [[nodiscard]] Result<Name> find(std::uint64_t address);

  /// Whether the address is in the kernel's image: what is there stays until the next boot, unlike modules and BPF
  /// programs, which others replace. True if the kernel hides its addresses.
  [[nodiscard]] bool is_in_image(std::uint64_t address);

  /// Reads the file for find_kallsyms().
  [[nodiscard]] Result<std::vector<std::uint64_t>> addresses(const std::vector<std::string_view>& names);

  struct Stats {
    std::size_t symbols = 0;
    std::size_t bytes = 0;
    std::uint64_t loads = 0;
    std::uint64_t failed_loads = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  using TablePtr = std::shared_ptr<const KallsymsTable>;
  [[nodiscard]] TablePtr table() const;
  /// Reads the file again unless it was read less than `interval_ns` ago; one thread at a time, the others wait for its
  /// result.
  void reload_after(std::int64_t interval_ns);
  /// Reads the file again if other BPF programs are loaded than when it was read.
  void reload_for_programs();
  [[nodiscard]] std::vector<KernelFunction> read_programs() const;
  Status load_locked();

  /// The file's text from its beginning.
  [[nodiscard]] Result<std::string> read_text() const;

  const Clock& clock_;
  const Options options_;

  std::mutex load_mutex_;                 ///< held while reading and parsing; taken before mutex_
  std::vector<KernelFunction> programs_;  ///< guarded by load_mutex_: at the last load, sorted

  mutable std::mutex mutex_;                  ///< guards the members below; never held for long
  TablePtr table_;                            ///< null until the first successful load
  std::string error_;                         ///< why the last load failed
  std::optional<MonotonicTime> loaded_at_;    ///< the last attempt, successful or not
  std::optional<MonotonicTime> compared_at_;  ///< when the programs were looked at last
  Stats stats_;
};

}  // namespace flamed::symbolizer
