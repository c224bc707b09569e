// SPDX-License-Identifier: Apache-2.0
//
// TokenFile: the secrets that clients on other hosts must know. Any thread.
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

struct Token {
  std::string secret;
  std::string user;  ///< who knows it sees what this user of the host may see; empty: everything

  friend bool operator==(const Token&, const Token&) = default;
};

/// One token on each line, of at least kLeastTokenBytes printable characters without blanks, and behind a blank the
/// name of a user, if there is one; empty lines and those that begin with '#' are skipped. Pure. An error names the
/// wrong line, but never quotes it.
inline constexpr std::size_t kLeastTokenBytes = 16;
Result<std::vector<Token>> parse_tokens(std::string_view text);

/// Compares in constant time, however much of `presented` is right.
bool is_same_secret(std::string_view presented, std::string_view token);

/// The text after "Bearer " in the header Authorization; empty if it has something else.
std::optional<std::string_view> bearer_token(std::string_view authorization);

class TokenFile {
 public:
  /// Refuses a file without a token, a file that everybody may read, and one that users other than its owner may write
  /// to.
  static Result<std::unique_ptr<TokenFile>> open(std::string path);

  /// The user of the token, see Token::user; none if it is not accepted. Reads the file again when it has changed; as
  /// long as that fails, no token is accepted.
  [[nodiscard]] std::optional<std::string> user_of(std::string_view presented);

 private:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  Status read_if_changed();

  /// Differs when the file has been replaced or changed.
  struct Edition {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    timespec changed{};  ///< its ctime, which a change of its mode changes as well
    [[nodiscard]] bool is(const Edition& other) const {
      return device == other.device && inode == other.inode && size == other.size &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
  };

  const std::string path_;
  std::mutex mutex_;  ///< for what follows
  Edition edition_;
  std::vector<Token> tokens_;
};

}  // namespace flamed::api
