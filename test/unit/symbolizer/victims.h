// SPDX-License-Identifier: Apache-2.0
//
// Runs the victim programs that Meson built, and opens their files.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/handle.h"

namespace flamed::symbolizer {

/// File offsets of functions, as the running victim prints them.
using Truth = std::map<std::string, std::uint64_t>;

inline Truth truth_of(const char* victim) {
  Truth truth;
  const char* emulator = std::getenv("FLAMED_EMULATOR");  // see test/arm64/emulate.sh
  const std::string command = emulator == nullptr ? victim : std::string(emulator) + " " + victim;
  std::FILE* out = ::popen(command.c_str(), "r");
  char line[512];
  while (out != nullptr && std::fgets(line, sizeof line, out) != nullptr) {
    const std::string text(line);
    const std::size_t tab = text.find('\t');
    if (tab != std::string::npos) truth[text.substr(0, tab)] = std::stoull(text.substr(tab + 1), nullptr, 16);
  }
  if (out != nullptr) ::pclose(out);
  return truth;
}

inline Fd open_victim(const char* victim) { return Fd(::open(victim, O_RDONLY | O_CLOEXEC)); }

inline std::string bytes_of(const char* victim) { return read_file(victim, std::size_t{64} << 20).value(); }

/// A file that no directory names.
inline Fd file_with(const std::string& bytes) {
  Fd fd(::memfd_create("flamed-test", MFD_CLOEXEC));
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(fd.get(), bytes.data() + written, bytes.size() - written);
    if (n <= 0) return Fd();
    written += static_cast<std::size_t>(n);
  }
  return fd;
}

}  // namespace flamed::symbolizer
