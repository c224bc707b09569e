// SPDX-License-Identifier: Apache-2.0
//
// TokenFile: the secrets by which callers from other hosts are known. Any thread.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::api {

/// One token on each line, of at least kLeastTokenBytes printable characters without blanks; empty lines and those that
/// begin with '#' are skipped. Pure. An error says which line is wrong, and never what stands there.
inline constexpr std::size_t kLeastTokenBytes = 16;
Result<std::vector<std::string>> parse_tokens(std::string_view text);

/// In a time that does not depend on how much of `presented` is right.
bool is_same_secret(std::string_view presented, std::string_view token);

/// What stands behind "Bearer " in the header Authorization; empty where it holds something else.
std::optional<std::string_view> bearer_token(std::string_view authorization);

class TokenFile {
 public:
  /// Refuses a file without a token, and one that anybody may read, or that others than its owner may write.
  static Result<std::unique_ptr<TokenFile>> open(std::string path);

  /// Reads the file again when it has changed; as long as that fails, no token is accepted.
  [[nodiscard]] bool accepts(std::string_view presented);

 private:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  Status read_if_changed();

  /// Tells a file from what stood in its place before, or in it.
  struct Edition {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    timespec changed{};  ///< its ctime: also a change of rights counts
    [[nodiscard]] bool is(const Edition& other) const {
      return device == other.device && inode == other.inode && size == other.size &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
  };

  const std::string path_;
  std::mutex mutex_;  ///< for what follows
  Edition edition_;
  std::vector<std::string> tokens_;
};

}  // namespace flamed::api
