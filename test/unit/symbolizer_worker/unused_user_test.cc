// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/unused_user.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

class FakeProc {
 public:
  FakeProc() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-proc-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  void add(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  void add_process(int pid, const std::string& uids) const {
    add(std::to_string(pid) + "/status",
        "Name:\tx\nPid:\t1\nUid:\t" + uids + "\nGid:\t1\t1\t1\t1\nNSpid:\t1\nSigCgt:\t0000000000000000\n");
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

bool nobody_has_one(uid_t /*user*/) { return false; }

TEST_CASE("a uid with a process or an account is not used") {
  const FakeProc proc;
  const auto number = [](uid_t i) { return std::to_string(kFirstUnusedUser + i); };
  UserSearch search{nobody_has_one, 0, proc.path()};
  CHECK(find_unused_user(search) == kFirstUnusedUser);
  proc.add_process(10, number(0) + "\t0\t0\t0");
  CHECK(find_unused_user(search) == kFirstUnusedUser + 1);
  proc.add_process(11, "0\t" + number(1) + "\t" + number(2) + "\t0");
  CHECK(find_unused_user(search) == kFirstUnusedUser + 3);
  search.has_account = [](uid_t user) { return user == kFirstUnusedUser + 3; };
  CHECK(find_unused_user(search) == kFirstUnusedUser + 4);
  // Simultaneous searches begin at different places, and wrap around.
  search.begin_at = 5 * kUnusedUsers + 7;
  CHECK(find_unused_user(search) == kFirstUnusedUser + 7);
  search.begin_at = kUnusedUsers - 1;
  proc.add_process(12, number(kUnusedUsers - 1) + "\t0\t0\t0");
  CHECK(find_unused_user(search) == kFirstUnusedUser + 4);
  search.has_account = [](uid_t) { return true; };
  CHECK_FALSE(find_unused_user(search).has_value());
}

TEST_CASE("a uid that this user namespace does not map is not used") {
  const FakeProc proc;
  const UserSearch search{nobody_has_one, 0, proc.path()};
  proc.add("self/uid_map", "         0       1000          1\n         1     100000      65535\n");
  CHECK(find_unused_user(search) == kFirstUnusedUser);
  proc.add("self/uid_map", "         0       1000          1\n     60710     100000      65535\n");
  CHECK(find_unused_user(search) == 60'710U);
  proc.add("self/uid_map", "         0       1000          1\n");
  CHECK_FALSE(find_unused_user(search).has_value());

  CHECK(is_mapped("0 0 4294967295\n", 4'294'967'294));
  CHECK_FALSE(is_mapped("0 0 4294967295\n", 4'294'967'295));
  CHECK_FALSE(is_mapped("5 0 3\n", 4));
  CHECK(is_mapped("5 0 3\n", 7));
  CHECK_FALSE(is_mapped("5 0 3\n", 8));
  CHECK_FALSE(is_mapped("", 0));
  CHECK_FALSE(is_mapped("none\n", 0));
}

}  // namespace
}  // namespace flamed::symbolizer
