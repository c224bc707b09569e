// SPDX-License-Identifier: Apache-2.0
//
// Does flamed read ELF files as libdw does? Functions, unwind rows, lines and inlined calls of files are compared,
// those of their debug files on this host included:
//
//   agreement [--loaded] [--most=N] PATH...
//
// PATH: a file, or a folder with all ELF files below it. --loaded: also this program and its libraries. --most: of each
// file at most about so many rows, and so many addresses for lines and calls; 0, the default: all.
// Prints a table with a row for each PATH, which counts addresses: of those whose unwind rows were compared, up to
// three are in each row. Below it, each kind of difference. Exit status: 0 when every difference is explained, 1
// otherwise.
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "symbolizer/names/debug_file_finder.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "test/agreement/function_agreement.h"
#include "test/agreement/source_agreement.h"
#include "test/agreement/tally.h"
#include "test/agreement/unwind_agreement.h"

namespace flamed::agreement {
namespace {

namespace fs = std::filesystem;

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t foreign = 0;  ///< files with code for other machines, which flamed does not unwind
  Tally functions;            ///< of .eh_frame
  Tally unwind;
  SourceTally sources;

  void add(const Totals& other) {
    files += other.files;
    foreign += other.foreign;
    functions.add(other.functions);
    unwind.add(other.unwind);
    sources.lines.add(other.sources.lines);
    sources.chains.add(other.sources.chains);
    sources.inlined += other.sources.inlined;
  }
};

class Comparison {
 public:
  explicit Comparison(std::size_t most) : most_(most) {}

  Totals compare(const fs::path& path) {
    Totals totals;
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      if (!compare_file(path, totals)) totals.unwind.add_unexplained("no ELF file", path);
      return totals;
    }
    std::vector<fs::path> files;
    for (auto entry = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, ignored);
         entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
      // Debug files are compared as parts of their modules.
      if (!entry->is_regular_file(ignored) || entry->is_symlink(ignored) || entry->path().extension() == ".debug")
        continue;
      files.push_back(entry->path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) compare_file(file, totals);
    return totals;
  }

 private:
  /// False: it is no ELF file, or can't be read.
  bool compare_file(const std::string& path, Totals& totals) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Elf64_Ehdr header{};  // in files of 32 bits, what is read of it stands in the same place
    if (!fd || ::pread(fd.get(), &header, sizeof(header), 0) != sizeof(header)) return false;
    if (!std::equal(header.e_ident, header.e_ident + SELFMAG, ELFMAG)) return false;
    // The same file may stand under several names. Kernel modules and object files are not what processes map.
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0 || !seen_.emplace(status.st_dev, status.st_ino).second) return true;
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return true;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)) {
      ++totals.foreign;
      return true;
    }
    ++totals.files;
    compare_functions(path, fd.get(), totals.functions);
    compare_unwind(path, fd.get(), most_, totals.unwind);
    const Result<symbolizer::ElfFacts> facts = reader_.inspect(fd.get());
    if (!facts) {
      totals.sources.lines.add_unexplained("flamed can't read it", path + ": " + facts.error().message());
      return true;
    }
    const symbolizer::DebugFiles debug = finder_.find({path, *facts, 0, symbolizer::owner_of(fd.get())});
    compare_sources(path, {fd.get(), debug.debug.get(), debug.alternate.get()}, most_, totals.sources);
    return true;
  }

  const std::size_t most_;
  symbolizer::DirectModuleReader reader_;
  symbolizer::DirectRootFiles root_files_;
  symbolizer::DebugFileFinder finder_{reader_, root_files_};
  std::set<std::pair<dev_t, ino_t>> seen_;
};

void print_row(const std::string& name, const Totals& t) {
  std::printf("%-44s %5" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8" PRIu64 " %8" PRIu64
              " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n",
              name.size() > 44 ? ("..." + name.substr(name.size() - 41)).c_str() : name.c_str(), t.files,
              t.functions.compared, t.functions.equal, t.unwind.compared, t.unwind.equal, t.sources.lines.compared,
              t.sources.lines.equal, t.sources.chains.compared, t.sources.chains.equal, t.sources.inlined);
}

void print(const char* title, const char* of, const Differences& differences) {
  for (const auto& [what, difference] : differences) {
    std::printf("%s: %s: %s: %" PRIu64 "\n", title, of, what.c_str(), difference.count);
    for (const std::string& example : difference.examples) std::printf("    %s\n", example.c_str());
  }
}

int report(const Totals& totals) {
  const std::pair<const char*, const Tally*> tallies[] = {{"functions", &totals.functions},
                                                          {"rows", &totals.unwind},
                                                          {"lines", &totals.sources.lines},
                                                          {"chains", &totals.sources.chains}};
  std::uint64_t unexplained = 0;
  if (totals.foreign != 0) std::printf("left out, code for other machines: %" PRIu64 " files\n", totals.foreign);
  for (const auto& [of, tally] : tallies) print("explained", of, tally->explained);
  for (const auto& [of, tally] : tallies) {
    print("UNEXPLAINED", of, tally->unexplained);
    for (const auto& [what, difference] : tally->unexplained) unexplained += difference.count;
    // What compared nothing shows nothing.
    if (tally->compared == 0) std::printf("UNEXPLAINED: no %s were compared\n", of);
    if (tally->compared == 0) ++unexplained;
  }
  std::printf("unexplained differences: %" PRIu64 "\n", unexplained);
  return unexplained == 0 ? 0 : 1;
}

int add_loaded(dl_phdr_info* info, std::size_t, void* paths) {
  const std::string_view name = info->dlpi_name;
  if (name.empty()) static_cast<std::vector<std::string>*>(paths)->emplace_back("/proc/self/exe");
  // The vdso has a name without a file.
  if (name.find('/') != std::string_view::npos) static_cast<std::vector<std::string>*>(paths)->emplace_back(name);
  return 0;
}

int run(int argc, char** argv) {
  ::elf_version(EV_CURRENT);
  std::size_t most = 0;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    static constexpr std::string_view kMost = "--most=";
    if (argument.substr(0, kMost.size()) == kMost) {
      most = std::strtoul(argv[i] + kMost.size(), nullptr, 10);
    } else if (argument == "--loaded") {
      ::dl_iterate_phdr(add_loaded, &paths);
    } else {
      paths.emplace_back(argument);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: %s [--loaded] [--most=N] PATH...\n", argv[0]);
    return 2;
  }
  Comparison comparison(most);
  Totals totals;
  std::printf("%-44s %5s %9s %9s %9s %9s %8s %8s %8s %8s %8s\n", "", "files", "functions", "equal", "rows", "equal",
              "lines", "equal", "chains", "equal", "inlined");
  for (const std::string& path : paths) {
    const Totals here = comparison.compare(path);
    if (here.files != 0) print_row(path, here);
    std::fflush(stdout);
    totals.add(here);
  }
  print_row("all", totals);
  return report(totals);
}

}  // namespace
}  // namespace flamed::agreement

int main(int argc, char** argv) { return flamed::agreement::run(argc, argv); }
