// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debug_file_finder.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kMaxChecksums = 1024;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

/// CRC-32 as in zlib and .gnu_debuglink. Empty if the file can't be read to its end.
std::optional<std::uint32_t> checksum_of(int fd, std::uint64_t size) {
  std::vector<unsigned char> buffer(kReadBytes);
  ::uLong checksum = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    checksum = ::crc32_z(checksum, buffer.data(), static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
  }
  return static_cast<std::uint32_t>(checksum);
}

/// "/usr/bin/ls" -> "/usr/bin"; "/ls" -> "".
std::string folder_of(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

bool has_more_names(const ElfFacts& debug, const ElfFacts& module) {
  return (debug.has_symtab && !module.has_symtab) || (debug.has_debug_info && !module.has_debug_info);
}

}  // namespace

std::string DebugFileFinder::build_id_path(const std::string& build_id) const {
  constexpr std::size_t kFolderDigits = 2;
  if (build_id.size() <= kFolderDigits) return {};
  return options_.folder + "/.build-id/" + build_id.substr(0, kFolderDigits) + "/" + build_id.substr(kFolderDigits) +
         ".debug";
}

DebugFiles DebugFileFinder::find(const Question& question) {
  DebugFiles files;
  const ElfFacts& facts = question.facts;
  const bool wants_debug = !facts.has_symtab || !facts.has_debug_info;
  // Root directories that users may have arranged come last.
  std::vector<std::int32_t> roots{RootFiles::kHost};
  if (question.pid > 0) roots.push_back(question.pid);

  for (const std::int32_t root : roots) {
    if (!files.alternate) find_alternate(root, question.path, facts, question.owner, files);
    if (wants_debug && find_debug(root, question, files)) break;
  }
  if (wants_debug && !files.debug && remote_ != nullptr && !facts.build_id.empty()) {
    RemoteDebugFiles::Answer answer = remote_->find(facts.build_id);
    files.pending = answer.pending;
    if (answer.file && accept({std::move(answer.file), true}, facts, files)) {
      for (const std::int32_t root : roots) find_alternate(root, "", files.debug_facts, question.owner, files);
    }
  }
  return files;
}

bool DebugFileFinder::find_debug(std::int32_t root, const Question& question, DebugFiles& files) {
  if (const std::string path = build_id_path(question.facts.build_id); !path.empty()) {
    if (accept_one(root, {&path, 1}, question, files)) return true;
  }
  std::vector<std::string> candidates;
  const std::string_view module_path = without_deleted_mark(question.path);
  if (const std::string& name = question.facts.debug_link; !name.empty() && module_path.substr(0, 1) == "/") {
    const std::string folder = folder_of(module_path);
    candidates.push_back(folder + "/" + name);
    candidates.push_back(folder + "/.debug/" + name);
    candidates.push_back(options_.folder + folder + "/" + name);
  }
  return accept_one(root, candidates, question, files);
}

bool DebugFileFinder::accept_one(std::int32_t root, std::span<const std::string> candidates, const Question& question,
                                 DebugFiles& files) {
  if (candidates.empty()) return false;
  std::vector<RootFile> opened = open(root, candidates, question.owner);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!opened[i].file || !accept(std::move(opened[i]), question.facts, files)) continue;
    find_alternate(root, candidates[i], files.debug_facts, question.owner, files);
    return true;
  }
  return false;
}

std::vector<RootFile> DebugFileFinder::open(std::int32_t root, std::span<const std::string> candidates,
                                            const FileOwner& owner) {
  std::vector<RootFile> files = files_.open(root, candidates, owner);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    // Only root can write to the host's own folder for debug files.
    const bool is_host_folder = root == RootFiles::kHost && candidates[i].starts_with(options_.folder + "/");
    if (files[i].is_foreign && !is_host_folder) files[i].file.reset();
  }
  return files;
}

bool DebugFileFinder::accept(RootFile candidate, const ElfFacts& module, DebugFiles& files) {
  Result<ElfFacts> facts = reader_.inspect(candidate.file.get());
  if (!facts || !has_more_names(*facts, module)) return false;
  const bool has_both = !facts->build_id.empty() && !module.build_id.empty();
  const bool belongs = has_both ? facts->build_id == module.build_id
                                : !module.debug_link.empty() && has_checksum(candidate, module.debug_link_crc);
  if (!belongs) return false;
  files.debug = std::move(candidate.file);
  files.debug_facts = std::move(facts).value();
  return true;
}

bool DebugFileFinder::has_checksum(const RootFile& candidate, std::uint32_t wanted) {
  // The caller would wait for reading the whole file, which may never end.
  if (!candidate.is_local) return false;
  const Fd& file = candidate.file;
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > options_.max_checksum_bytes) return false;
  const FileVersion version{status.st_dev, status.st_ino, size,
                            std::int64_t{status.st_ctim.tv_sec} * kNsPerSecond + status.st_ctim.tv_nsec};
  {
    std::lock_guard lock(mutex_);
    if (const auto known = checksums_.find(version); known != checksums_.end()) return known->second == wanted;
  }
  const std::optional<std::uint32_t> checksum = checksum_of(file.get(), size);
  if (!checksum) return false;
  std::lock_guard lock(mutex_);
  if (checksums_.size() >= kMaxChecksums) checksums_.clear();
  checksums_[version] = *checksum;
  return *checksum == wanted;
}

void DebugFileFinder::find_alternate(std::int32_t root, const std::string& path, const ElfFacts& facts,
                                     const FileOwner& owner, DebugFiles& files) {
  if (facts.alternate_link.empty() || files.alternate) return;
  const std::string& link = facts.alternate_link;
  // dwz writes a path relative to the file with the link, or an absolute one.
  std::vector<std::string> candidates{link.front() == '/' ? link : folder_of(without_deleted_mark(path)) + "/" + link};
  if (std::string by_id = build_id_path(facts.alternate_build_id); !by_id.empty()) candidates.push_back(by_id);
  candidates.push_back(options_.folder + "/.dwz/" + link.substr(link.find_last_of('/') + 1));
  for (RootFile& candidate : open(root, candidates, owner)) {
    if (!candidate.file) continue;
    const Result<ElfFacts> found = reader_.inspect(candidate.file.get());
    if (!found || found->build_id != facts.alternate_build_id) continue;
    files.alternate = std::move(candidate.file);
    return;
  }
}

}  // namespace flamed::symbolizer
