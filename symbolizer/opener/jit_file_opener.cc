// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/jit_file_opener.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "symbolizer/model/clean_name.h"
#include "symbolizer/opener/module_opener.h"
#include "symbolizer/process/executable_lines.h"
#include "symbolizer/process/mount_info.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "symbolizer/process/process_status.h"
#include "symbolizer/process/root_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatusLimitBytes = 16'384;
constexpr std::size_t kArgumentsLimitBytes = 8U << 20;  ///< a quarter of the stack's limit, which is 8 MiB by default

constexpr std::size_t kMostFolders = 8;  ///< a process can set any number

constexpr const char* kEnded = "the process ended before its perf maps and jitdumps were looked for";

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

std::string program_of(std::int32_t pid, const std::string& proc) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(proc_path(proc, pid, "exe").c_str(), target.data(), target.size());
  if (size <= 0) return {};
  return std::string(file_name(without_deleted_mark({target.data(), static_cast<std::size_t>(size)})));
}

/// Appends the values after `prefix` in NUL-terminated strings: an environment, arguments.
void append_values(std::string_view strings, std::string_view prefix, std::vector<std::string>& values) {
  while (!strings.empty()) {
    const std::size_t length = std::min(strings.find('\0'), strings.size());
    const std::string_view entry = strings.substr(0, length);
    if (entry.substr(0, prefix.size()) == prefix) values.emplace_back(entry.substr(prefix.size()));
    strings.remove_prefix(std::min(length + 1, strings.size()));
  }
}

std::vector<std::string> perf_map_folders(std::int32_t pid, const std::string& proc) {
  std::vector<std::string> folders{"/tmp"};
  if (const Result<std::string> text = read_file(proc_path(proc, pid, "environ"), kArgumentsLimitBytes)) {
    append_values(*text, "DOTNET_PerfMapJitDumpPath=", folders);
    append_values(*text, "TMPDIR=", folders);
  }
  if (const Result<std::string> text = read_file(proc_path(proc, pid, "cmdline"), kArgumentsLimitBytes)) {
    append_values(*text, "--perf-basic-prof-path=", folders);
    append_values(*text, "--perf_basic_prof_path=", folders);
  }
  // Relative paths depend on a folder that the process may have left since.
  folders.erase(std::remove_if(folders.begin(), folders.end(),
                               [](const std::string& folder) {
                                 return folder.empty() || folder.front() != '/' || folder.size() >= PATH_MAX;
                               }),
                folders.end());
  if (folders.size() > kMostFolders) folders.resize(kMostFolders);
  return folders;
}

bool is_jitdump_name(std::string_view name) {
  constexpr std::string_view kBefore = "jit-";
  constexpr std::string_view kAfter = ".dump";
  if (name.size() <= kBefore.size() + kAfter.size() || name.substr(0, kBefore.size()) != kBefore ||
      name.substr(name.size() - kAfter.size()) != kAfter) {
    return false;
  }
  name = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

const char* kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// Empty if the file may be used.
std::string why_not(const struct stat& status, const ProcessStatus& process) {
  if (!S_ISREG(status.st_mode)) return std::string("is ") + kind_of(status.st_mode) + ", not a file";
  if (status.st_uid != 0 && !process.acts_for(status.st_uid)) {
    return "belongs to uid " + std::to_string(status.st_uid) + ", not to the process's " +
           std::to_string(process.uid.effective);
  }
  // flamed may read more than the process's user: that user must not see content of files that only root may read.
  if (!process.acts_for(status.st_uid) && (status.st_mode & S_IROTH) == 0) return "may be read by root alone";
  // Another user may have created this hard link to a file that is not a perf map.
  if (status.st_nlink > 1) return "has more than one name (hard links)";
  return {};
}

/// `code()` is ENOENT if there is no file.
Result<JitFilePtr> finish(JitFormat format, const std::string& path, const Fd& found, const ProcessStatus& process) {
  const std::string shown = clean_name(path, 255);
  struct stat status {};
  if (::fstat(found.get(), &status) != 0) return Error::from_errno("stat " + shown);
  if (std::string reason = why_not(status, process); !reason.empty()) return Error(shown + " " + reason + ": not used");
  auto file = std::make_shared<JitFile>();
  file->format = format;
  file->path = path;
  file->device = status.st_dev;
  file->inode = status.st_ino;
  // The descriptor refers to the checked file, even if the path has changed.
  Result<Fd> reopened = reopen_regular(found, shown);
  if (!reopened) return reopened.error();
  file->file = std::move(reopened).value();
  return JitFilePtr(std::move(file));
}

Result<JitFilePtr> open_perf_map(const RootDirectory& root, const std::string& path, const ProcessStatus& process) {
  const Result<Fd> found = root.find(path, RootDirectory::Links::kNotTheLast);
  if (!found) return Error(found.error());
  return finish(JitFormat::kPerfMap, path, *found, process);
}

Result<JitFilePtr> open_jitdump(std::int32_t pid, const MapsLine& line, const ProcessStatus& process,
                                const std::string& proc) {
  OpenRequest request;
  request.file = line.file;
  request.path = std::string(line.path);
  request.pid = pid;
  request.start = line.start;
  request.end = line.end;
  const Result<Fd> found = open_module(request, proc);
  if (!found) return Error(found.error());
  return finish(JitFormat::kJitDump, request.path, *found, process);
}

/// A later reader of the file, for a query, would block as well.
Error hanging(std::string_view path, std::string_view type) {
  return Error(clean_name(path, 255) + " lies on " + clean_name(type, 32) +
               ", which may not answer: not used; have it written to a disk of this machine");
}

struct Finding {
  explicit Finding(std::string_view mountinfo) : mounts(mountinfo) {}

  std::string_view mounts;
  std::vector<JitFilePtr> files;
  std::string refusal;  ///< of an existing file that may not be used

  void take(Result<JitFilePtr> opened) {
    // Links may have led there.
    if (opened) {
      const JitFile& file = **opened;
      const std::string_view type = file_system_of(mounts, {major(file.device), minor(file.device), file.inode});
      if (!type.empty() && may_hang(type)) opened = hanging(file.path, type);
    }
    if (opened)
      files.push_back(std::move(opened).value());
    else if (opened.error().code() != ENOENT && refusal.empty())
      refusal = opened.error().message();
  }
  [[nodiscard]] bool has(JitFormat format) const {
    return std::any_of(files.begin(), files.end(), [&](const JitFilePtr& file) { return file->format == format; });
  }
};

}  // namespace

std::string jit_advice(const std::string& program) {
  struct Advice {
    std::string_view prefix;
    const char* words;
  };
  static constexpr std::array<Advice, 12> kAdvice{{
      {"node", "start node with --perf-basic-prof"},
      {"java", "start java with -XX:+PreserveFramePointer and run jcmd PID Compiler.perfmap (JDK 17 and later)"},
      {"python", "start python with -X perf (3.12 and later)"},
      {"pypy", "PyPy can't name its code here"},
      {"dotnet", "set DOTNET_PerfMapEnabled=1 in its environment"},
      {"ruby", "start ruby with --yjit-perf"},
      {"php", "set opcache.jit_debug=16"},
      {"beam", "start Erlang with +JPperf true"},
      {"luajit", "build LuaJIT with LUAJIT_USE_PERFTOOLS"},
      {"deno", "start deno with --v8-flags=--perf-basic-prof"},
      {"chrom", "start it with --js-flags=--perf-basic-prof and --no-sandbox"},
      {"wasmtime", "start wasmtime with --profile perfmap"},
  }};
  for (const Advice& advice : kAdvice) {
    if (program.compare(0, advice.prefix.size(), advice.prefix) == 0) return advice.words;
  }
  return {};
}

JitFiles with_known(Result<JitFiles> found, const JitFiles* known) {
  if (!found) {
    JitFiles kept = known != nullptr ? *known : JitFiles();
    if (kept.files.empty()) kept.why_none = found.error().message();
    return kept;
  }
  if (known == nullptr) return std::move(found).value();
  std::vector<JitFilePtr>& files = found->files;
  for (const JitFilePtr& old : known->files) {
    const auto now =
        std::find_if(files.begin(), files.end(), [&](const JitFilePtr& file) { return file->format == old->format; });
    if (now == files.end())
      files.push_back(old);
    else if ((*now)->device == old->device && (*now)->inode == old->inode)
      *now = old;
  }
  if (!files.empty()) found->why_none.clear();
  return std::move(found).value();
}

Result<JitFiles> find_jit_files(const ProcessId& owner, const std::string& proc) {
  if (!is_alive(proc, owner)) return Error(kEnded);
  const Result<std::string> status_text = read_file(proc_path(proc, owner.pid, "status"), kStatusLimitBytes);
  const std::optional<ProcessStatus> status = status_text ? parse_process_status(*status_text) : std::nullopt;
  if (!status) return Error("cannot read " + proc_path(proc, owner.pid, "status"));
  const Result<RootDirectory> root = RootDirectory::of_process(proc, owner.pid);
  if (!root) return root.error();

  // Required to know what may hang: a process can have more mounts than are read.
  const Result<std::string> mounts = read_file(proc_path(proc, owner.pid, "mountinfo"), kMountInfoLimitBytes);
  if (!mounts) return Error(mounts.error()).with_context("cannot find out where its files are");
  Finding finding(*mounts);
  JitFiles result;
  bool is_jvm = false;
  const std::string map_name = "perf-" + std::to_string(status->innermost_pid) + ".map";
  for (const std::string& folder : perf_map_folders(owner.pid, proc)) {
    if (finding.has(JitFormat::kPerfMap)) break;
    std::string path = folder;
    path += '/';
    path += map_name;
    if (const std::optional<DoubtfulMount> mount = may_hang_on_the_way(*mounts, path))
      finding.take(hanging(path, mount->type));
    else
      finding.take(open_perf_map(*root, path, *status));
  }
  if (const Result<std::string> maps = read_executable_lines(proc_path(proc, owner.pid, "maps"))) {
    for (const MapsLine& line : parse_executable_maps(*maps)) {
      const std::string_view name = file_name(line.path);
      if (name == "libjvm.so") is_jvm = true;
      if (line.file.is_file() && is_jitdump_name(name) && !finding.has(JitFormat::kJitDump)) {
        const std::string_view type = file_system_of(*mounts, line.file);
        finding.take(!type.empty() && may_hang(type) ? hanging(line.path, type)
                                                     : open_jitdump(owner.pid, line, *status, proc));
      }
    }
  }
  const std::string program = program_of(owner.pid, proc);
  // If the pid was reused meanwhile, all of this is another process's.
  if (!is_alive(proc, owner)) return Error(kEnded);

  result.files = std::move(finding.files);
  if (!result.files.empty()) return result;
  result.why_none = finding.refusal;
  if (result.why_none.empty()) {
    result.why_none = "no file behind this memory, and no /tmp/" + map_name + " that names JIT code";
    const std::string advice = jit_advice(is_jvm ? "java" : program);
    if (!advice.empty()) result.why_none += ": " + advice;
  }
  return result;
}

}  // namespace flamed::symbolizer
