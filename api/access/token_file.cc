// SPDX-License-Identifier: Apache-2.0
#include "api/access/token_file.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/handle.h"

namespace flamed::api {
namespace {

constexpr std::size_t kLargestFileBytes = 64U << 10;
constexpr std::string_view kScheme = "bearer";

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

bool is_printable(char c) { return c > ' ' && c < '\x7f'; }

bool is_word(std::string_view text) { return std::all_of(text.begin(), text.end(), is_printable); }

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

}  // namespace

Result<std::vector<Token>> parse_tokens(std::string_view text) {
  std::vector<Token> tokens;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string where = "line " + std::to_string(number);
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view secret = line.substr(0, blank);
    const std::string_view user = trimmed(line.substr(blank));
    if (!is_word(secret) || !is_word(user)) {
      return Error(where + " holds something else than a word of printable ASCII and, behind it, the name of a user");
    }
    if (secret.size() < kLeastTokenBytes) {
      return Error(where + " is shorter than " + std::to_string(kLeastTokenBytes) +
                   " characters: make a token with openssl rand -hex 32");
    }
    tokens.push_back({std::string(secret), std::string(user)});
  }
  if (tokens.empty()) return Error("it holds no token: write one with openssl rand -hex 32");
  return tokens;
}

bool is_same_secret(std::string_view presented, std::string_view token) {
  if (token.empty()) return false;
  unsigned difference = presented.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < presented.size(); ++i) {
    difference |= static_cast<unsigned char>(presented[i]) ^ static_cast<unsigned char>(token[i % token.size()]);
  }
  return difference == 0;
}

std::optional<std::string_view> bearer_token(std::string_view authorization) {
  authorization = trimmed(authorization);
  const std::size_t blank = authorization.find(' ');
  if (blank == std::string_view::npos || !equals_ignoring_case(authorization.substr(0, blank), kScheme)) {
    return std::nullopt;
  }
  return trimmed(authorization.substr(blank));
}

Result<std::unique_ptr<TokenFile>> TokenFile::open(std::string path) {
  std::unique_ptr<TokenFile> file(new TokenFile(std::move(path)));
  if (const Status read = file->read_if_changed(); !read) {
    return Error("cannot use the token file " + file->path_ + ": " + read.error().message());
  }
  return file;
}

Status TokenFile::read_if_changed() {
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    tokens_.clear();
    edition_ = {};
    return Error::from_errno("it cannot be opened");
  }
  const Edition edition{status.st_dev, status.st_ino, status.st_size, status.st_ctim};
  if (edition.is(edition_)) return {};
  tokens_.clear();
  edition_ = edition;
  if (!S_ISREG(status.st_mode)) return Error("it is no regular file");
  if ((status.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return Error(
        "users other than its owner and group may read it, or other than its owner may write to it: chmod 0640");
  }
  const Result<std::string> text = read_fd(fd.get(), kLargestFileBytes);
  if (!text) return text.error();
  Result<std::vector<Token>> tokens = parse_tokens(*text);
  if (!tokens) return tokens.error();
  tokens_ = std::move(*tokens);
  return {};
}

std::optional<std::string> TokenFile::user_of(std::string_view presented) {
  const std::lock_guard lock(mutex_);
  static_cast<void>(read_if_changed());
  // Compares all of them, so that the time reveals nothing.
  const Token* accepted = nullptr;
  for (const Token& token : tokens_) accepted = is_same_secret(presented, token.secret) ? &token : accepted;
  return accepted != nullptr ? std::optional(accepted->user) : std::nullopt;
}

}  // namespace flamed::api
