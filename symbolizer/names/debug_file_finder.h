// SPDX-License-Identifier: Apache-2.0
//
// DebugFileFinder: looks for the separate debug file of a module where distributions put such files. Any thread. What
// the constructor is given must outlive it.
//
// It opens files and, for a checksum, reads bytes; what they mean it asks the reader. A file counts only when it shows
// that it belongs to the module: by the same build-id, or by the checksum that the module names. Both can be forged,
// and names are shown to everybody who has the module mapped: so it must be root's, or of the user's whose the module
// is.
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

/// What belongs to one module, held open.
struct DebugFiles {
  Fd debug;
  ElfFacts debug_facts;  ///< of `debug`; empty without one
  Fd alternate;          ///< see ElfFacts::alternate_link
  bool pending = false;  ///< one may be on its way
};

class DebugFileFinder {
 public:
  struct Options {
    std::string folder = "/usr/lib/debug";
    /// Larger files are not read for their checksum. At 1 GB/s, two seconds.
    std::uint64_t max_checksum_bytes = std::uint64_t{2} << 30;
  };

  DebugFileFinder(ModuleReader& reader, RootFiles& files) : DebugFileFinder(reader, files, Options()) {}
  DebugFileFinder(ModuleReader& reader, RootFiles& files, Options options, RemoteDebugFiles* remote = nullptr)
      : reader_(reader), files_(files), options_(std::move(options)), remote_(remote) {}

  struct Question {
    std::string path;      ///< of the module, in the mount namespace of `pid`
    ElfFacts facts;        ///< of the module
    std::int32_t pid = 0;  ///< a process that has mapped it, or had: its root is searched after the host's. 0: none
    FileOwner owner{};     ///< of the module
  };
  /// By build-id FOLDER/.build-id/ab/cdef.debug; by .gnu_debuglink DIR/NAME, DIR/.debug/NAME, FOLDER/DIR/NAME, where
  /// DIR is the module's. Asks remotely only for what is not here.
  [[nodiscard]] DebugFiles find(const Question& question);

 private:
  struct FileVersion {
    std::uint64_t device, inode, size;
    std::int64_t changed_ns;
    friend auto operator<=>(const FileVersion&, const FileVersion&) = default;
  };

  /// `root`: whose, see RootFiles.
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

  std::mutex mutex_;  ///< guards what follows
  /// Asked for again each time that a module is looked at anew.
  std::map<FileVersion, std::uint32_t> checksums_;
};

}  // namespace flamed::symbolizer
