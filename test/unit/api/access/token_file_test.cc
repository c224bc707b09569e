// SPDX-License-Identifier: Apache-2.0
#include "api/access/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "test/catch.h"
#include "test/unit/api/access/scratch_file.h"

namespace flamed::api {
namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
constexpr const char* kOther = "fedcba9876543210fedcba9876543210";

TEST_CASE("a token file has one token a line, with comments and empty lines between them") {
  const auto tokens = parse_tokens("# made by openssl\n\n  " + std::string(kToken) + " \r\n" + kOther);
  REQUIRE(tokens.ok());
  CHECK(*tokens == std::vector<Token>{{kToken, ""}, {kOther, ""}});
}

TEST_CASE("a token may name a user behind a blank") {
  const auto tokens = parse_tokens(std::string(kToken) + " alice\n" + kOther + " \t bob \r\n");
  REQUIRE(tokens.ok());
  CHECK(*tokens == std::vector<Token>{{kToken, "alice"}, {kOther, "bob"}});
}

TEST_CASE("a bad token is refused with its line number and is not repeated") {
  for (const std::string text : {"short", "secret and more words", "0123456789secret0123456789 alice bob",
                                 "\x01\x02\x03\x04\x05\x06\x07\x08secret-secret"}) {
    const auto tokens = parse_tokens("#\n" + text + "\n");
    REQUIRE_FALSE(tokens.ok());
    CHECK(tokens.error().message().find("line 2") == 0);
    CHECK(tokens.error().message().find("secret") == std::string::npos);
  }
  CHECK_FALSE(parse_tokens("").ok());
  CHECK_FALSE(parse_tokens("# nothing\n\n").ok());
}

TEST_CASE("two secrets are equal only if all of their bytes are") {
  CHECK(is_same_secret(kToken, kToken));
  CHECK_FALSE(is_same_secret("", kToken));
  CHECK_FALSE(is_same_secret(kToken, ""));
  CHECK_FALSE(is_same_secret("", ""));
  CHECK_FALSE(is_same_secret(std::string(kToken) + kToken, kToken));
  CHECK_FALSE(is_same_secret(std::string(kToken).substr(1), kToken));
  CHECK_FALSE(is_same_secret(kOther, kToken));
}

TEST_CASE("a bearer token follows the scheme, however that is spelled") {
  CHECK(bearer_token("Bearer abc") == "abc");
  CHECK(bearer_token("bearer  abc ") == "abc");
  CHECK_FALSE(bearer_token("Basic abc").has_value());
  CHECK_FALSE(bearer_token("Bearerabc").has_value());
  CHECK_FALSE(bearer_token("Bearer").has_value());
  CHECK_FALSE(bearer_token("").has_value());
}

TEST_CASE("a token file that others may read or change, or without a token, is refused") {
  for (const mode_t mode : {0644U, 0660U, 0604U, 0602U}) {
    CAPTURE(mode);
    const ScratchFile file(kToken, mode);
    const auto opened = TokenFile::open(file.path());
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().message().find("0640") != std::string::npos);
  }
  CHECK_FALSE(TokenFile::open(ScratchFile("# none\n").path()).ok());
  CHECK_FALSE(TokenFile::open("/nonexistent/token").ok());
  CHECK_FALSE(TokenFile::open("/tmp").ok());
}

TEST_CASE("a token file is read again when it has changed") {
  const ScratchFile file(kToken);
  auto opened = TokenFile::open(file.path());
  REQUIRE(opened.ok());
  TokenFile& tokens = **opened;
  CHECK(tokens.user_of(kToken).has_value());
  CHECK_FALSE(tokens.user_of(kOther).has_value());
  file.replace(std::string(kOther) + "\n");
  CHECK(tokens.user_of(kOther).has_value());
  CHECK_FALSE(tokens.user_of(kToken).has_value());
}

TEST_CASE("while a token file is bad no token is accepted") {
  const ScratchFile file(kToken);
  auto opened = TokenFile::open(file.path());
  REQUIRE(opened.ok());
  TokenFile& tokens = **opened;
  REQUIRE(::chmod(file.path().c_str(), 0644) == 0);
  CHECK_FALSE(tokens.user_of(kToken).has_value());
  REQUIRE(::chmod(file.path().c_str(), 0640) == 0);
  CHECK(tokens.user_of(kToken).has_value());
  REQUIRE(::unlink(file.path().c_str()) == 0);
  CHECK_FALSE(tokens.user_of(kToken).has_value());
  file.write(std::string(kToken));
  CHECK(tokens.user_of(kToken).has_value());
}

}  // namespace
}  // namespace flamed::api
