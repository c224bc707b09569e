// SPDX-License-Identifier: Apache-2.0
//
// ScratchFile: a file that is removed at the end of the test.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "test/catch.h"

namespace flamed::api {

class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text, mode_t mode = 0640) {
    char name[] = "/tmp/flamed-test-XXXXXX";
    const int fd = ::mkstemp(name);
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = name;
    write(text, mode);
  }
  ~ScratchFile() { ::unlink(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(const std::string& text, mode_t mode = 0640) const {
    std::ofstream(path_) << text;
    REQUIRE(::chmod(path_.c_str(), mode) == 0);
  }
  /// As editors and configuration tools replace files.
  void replace(const std::string& text) const {
    const std::string fresh = path_ + ".new";
    std::ofstream(fresh) << text;
    REQUIRE(::chmod(fresh.c_str(), 0640) == 0);
    REQUIRE(::rename(fresh.c_str(), path_.c_str()) == 0);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace flamed::api
