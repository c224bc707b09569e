// SPDX-License-Identifier: Apache-2.0
//
// The manual pages flamed(8) and flamed.json(5) have every flag, key, default and exit status of the program.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/refusal.h"
#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// The tagged paragraphs of a section, by their tags: text in one line, without requests and escapes of roff, except
/// for bold text, which stands in asterisks.
std::map<std::string, std::string> entries_of(const char* variable, const std::string& section) {
  const char* path = std::getenv(variable);
  REQUIRE(path != nullptr);
  std::ifstream page(path);
  std::map<std::string, std::string> entries;
  std::string tag, current;
  for (std::string line; std::getline(page, line);) {
    line = std::regex_replace(line, std::regex(R"(\\fB([^\\]*(?:\\-[^\\]*)*)\\fR)"), "*$1*");
    line = std::regex_replace(line, std::regex(R"(\\f[IR])"), "");
    line = std::regex_replace(line, std::regex(R"(\\-)"), "-");
    if (line.starts_with(".SH ")) {
      current = line.substr(4);
      tag.clear();
    } else if (line == ".TP") {
      tag = line;
    } else if (current == section && tag == ".TP") {
      tag = std::regex_replace(line, std::regex(R"(^\.B |\*)"), "");
      entries[tag];
    } else if (current == section && !tag.empty() && !line.starts_with(".br")) {
      entries[tag] += (entries[tag].empty() ? "" : " ") + line;
    }
  }
  return entries;
}

/// What a message has behind `mark`.
std::string behind(const std::string& message, const std::string& mark) {
  const std::size_t at = message.find(mark);
  REQUIRE(at != std::string::npos);
  return message.substr(at + mark.size());
}

Status apply_value(const std::string& key, const std::string& json, Config& config) {
  return apply_json("{\"" + key + "\": " + json + "}", config);
}

std::vector<std::string> keys() {
  Config config;
  std::istringstream known(behind(apply_json(R"({"": 0})", config).error().message(), "known are "));
  std::vector<std::string> keys;
  for (std::string key; std::getline(known >> std::ws, key, ',');) keys.push_back(key);
  return keys;
}

std::string found(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

TEST_CASE("flamed(8) has each flag of the help and no other") {
  std::vector<std::string> flags;
  std::istringstream help(help_text());
  for (std::string line; std::getline(help, line);) {
    if (const std::string flag = found(line, R"(^  (--\S+(?: [A-Z]+| on\|off)*)(?:  .*| [a-z].*)?$)"); !flag.empty())
      flags.push_back(flag);
  }
  CHECK(flags.size() > keys().size());
  std::vector<std::string> described;
  for (const auto& [flag, text] : entries_of("FLAMED_MAN_8", "OPTIONS")) described.push_back(flag);
  std::sort(flags.begin(), flags.end());
  CHECK(described == flags);
}

TEST_CASE("flamed(8) has the exit statuses of the program") {
  std::map<std::string, std::string> statuses;
  std::vector<std::string> tried_again;
  for (const ExitStatusMeaning& one : exit_statuses()) {
    const std::string status = std::to_string(static_cast<int>(one.status));
    statuses[status] = one.meaning;
    if (one.is_tried_again) tried_again.push_back(status);
  }
  std::map<std::string, std::string> described = entries_of("FLAMED_MAN_8", "EXIT STATUS");
  // The paragraph behind the last one is about all of them.
  std::string& last = described[std::to_string(static_cast<int>(exit_statuses().back().status))];
  const std::string after = behind(last, " .PP ");
  last.resize(last.find(" .PP "));
  CHECK(described == statuses);
  const std::regex number("[0-9]+");
  const std::sregex_token_iterator numbers(after.begin(), after.end(), number);
  CHECK(std::vector<std::string>(numbers, std::sregex_token_iterator()) == tried_again);
}

TEST_CASE("flamed.json(5) has each key and no other") {
  std::vector<std::string> described;
  for (const auto& [key, text] : entries_of("FLAMED_MAN_5", "KEYS")) described.push_back(key);
  std::vector<std::string> known = keys();
  std::sort(known.begin(), known.end());
  CHECK(described == known);
}

TEST_CASE("flamed.json(5) says of each key what is allowed, its default and its flag") {
  for (auto& [key, text] : entries_of("FLAMED_MAN_5", "KEYS")) {
    CAPTURE(key, text);
    Config config;
    const std::string allowed = behind(apply_value(key, "{}", config).error().message(), "allowed is ");
    CHECK(found(text, R"(Allowed: (.*)\. Default:)") == allowed);

    // A default that is a value changes nothing, except that an address is named.
    const std::string value = found(text, R"(Default: \*(.*)\*\. Flag:)");
    if (!value.empty()) {
      REQUIRE(apply_value(key, '"' + value + '"', config));
      if (key == "listen") config.listen.clear();
      CHECK(changed_keys(Config(), config).empty());
    } else {
      CHECK_FALSE(found(text, R"(Default: (.*none)\.)").empty());
    }

    const std::string flag = found(text, R"(Flag: \*(\S+)\*\.$)");
    const std::vector<const char*> line{flag.c_str(), "\n"};
    CHECK(behind(parse_command_line(line).error().message(), "allowed is ") == allowed);
  }
}

}  // namespace
}  // namespace flamed::daemon
