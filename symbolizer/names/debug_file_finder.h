// SPDX-License-Identifier: Apache-2.0
//
// DebugFileFinder: looks for the separate debug file of a module in the usual places. Any thread. The constructor's
// arguments must outlive it.
//
// It opens files and, for a checksum, reads bytes; the reader parses them. A file is used only if it matches the
// module: by the same build-id, or by the checksum in the module. Both can be forged, and everybody who has the module
// mapped sees the names: so the file must belong to root or to the module's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/model/elf_facts.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/remote_debug_files.h"
#include "symbolizer/model/root_files.h"

namespace flamed::symbolizer {

/// The open debug files of one module.
struct DebugFiles {
  Fd debug;
  ElfFacts debug_facts;  ///< of `debug`; empty without one
  Fd alternate;          ///< see ElfFacts::alternate_link
  bool pending = false;  ///< one may be being fetched
};

class DebugFileFinder {
 public:
  struct Options {
    std::string folder = "/usr/lib/debug";
    /// No checksum is computed of larger files. Two seconds at 1 GB/s.
    std::uint64_t max_checksum_bytes = std::uint64_t{2} << 30;
  };

  DebugFileFinder(ModuleReader& reader, RootFiles& files) : DebugFileFinder(reader, files, Options()) {}
  DebugFileFinder(ModuleReader& reader, RootFiles& files, Options options, RemoteDebugFiles* remote = nullptr)
      : reader_(reader), files_(files), options_(std::move(options)), remote_(remote) {}

  struct Question {
    std::string path;      ///< of the module, in the mount namespace of `pid`
    ElfFacts facts;        ///< of the module
    std::int32_t pid = 0;  ///< a process that has mapped it, or had: its root directory is searched after the host's.
                           ///< 0: none
    FileOwner owner{};     ///< of the module
  };
  /// By build-id FOLDER/.build-id/ab/cdef.debug; by .gnu_debuglink DIR/NAME, DIR/.debug/NAME, FOLDER/DIR/NAME, where
  /// DIR is the module's. Asks remote servers only if there is no local file.
  [[nodiscard]] DebugFiles find(const Question& question);

 private:
  struct FileVersion {
    std::uint64_t device, inode, size;
    std::int64_t changed_ns;
    friend auto operator<=>(const FileVersion&, const FileVersion&) = default;
  };

  /// `root`: see `pid` in RootFiles.
  bool find_debug(std::int32_t root, const Question& question, DebugFiles& files);
  bool accept_one(std::int32_t root, std::span<const std::string> candidates, const Question& question,
                  DebugFiles& files);
  std::vector<RootFile> open(std::int32_t root, std::span<const std::string> candidates, const FileOwner& owner);
  bool accept(RootFile candidate, const ElfFacts& module, DebugFiles& files);
  bool has_checksum(const RootFile& candidate, std::uint32_t wanted);
  void find_alternate(std::int32_t root, const std::string& path, const ElfFacts& facts, const FileOwner& owner,
                      DebugFiles& files);
  [[nodiscard]] std::string build_id_path(const std::string& build_id) const;

  ModuleReader& reader_;
  RootFiles& files_;
  const Options options_;
  RemoteDebugFiles* const remote_;

  std::mutex mutex_;  ///< guards the members below
  /// Needed again each time that a module is checked.
  std::map<FileVersion, std::uint32_t> checksums_;
};

}  // namespace flamed::symbolizer
