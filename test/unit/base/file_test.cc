// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>

#include "test/catch.h"

namespace flamed {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    path_ = "/tmp/flamed-file-test-XXXXXX";
    ::close(::mkstemp(path_.data()));
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("a file of exactly the limit is read whole, one that is a byte larger is refused") {
  TemporaryFile file(std::string(100, 'x'));
  Result<std::string> whole = read_file(file.path(), 100);
  REQUIRE(whole.ok());
  CHECK(whole->size() == 100);
  Result<std::string> refused = read_file(file.path(), 99);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == EFBIG);
}

TEST_CASE("a file larger than one read step is read unchanged") {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i);
  TemporaryFile file(text);
  Result<std::string> whole = read_file(file.path(), 1 << 20);
  REQUIRE(whole.ok());
  CHECK(*whole == text);
}

TEST_CASE("a missing file is named in the error") {
  Result<std::string> missing = read_file("/nonexistent/file", 10);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message() == "open /nonexistent/file: No such file or directory");
}

TEST_CASE("one read returns as much as fits, and nothing of a missing file") {
  TemporaryFile file("0123456789");
  std::array<char, 100> buffer;
  CHECK(read_once(file.path(), buffer) == "0123456789");
  CHECK(read_once(file.path(), std::span(buffer).first(4)) == "0123");
  CHECK(read_once("/nonexistent/file", buffer).empty());
}

}  // namespace
}  // namespace flamed
