// SPDX-License-Identifier: Apache-2.0
#include "test/support/operations_page.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace flamed::test {
namespace {

constexpr std::string_view kLeftOut = "...";

/// Bold text is left unchanged: no quote is within double asterisks.
const std::regex kQuote(R"((^|[^*\w`])\*([^*\s](?:[^*]*[^*\s])?)\*(?![*\w]))");
/// A row of the table of statuses: number, meaning, yes or no, messages.
const std::regex kStatusRow(R"(\| (\d+) \| ([^|]+) \| (yes|no) \|([^|]*)\|)");
/// With the quote after it, if there is one.
const std::regex kStatus(R"(\b[Ss]tatus(?:es)? (\d+)(: \*)?)");
const std::regex kHttpStatus(R"(\bHTTP (\d{3})\b)");
const std::regex kBareHttpStatus(R"(\b(200|401|403|404|422|503)\b)");

std::vector<std::smatch> all(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

std::string without_code_marks(std::string text) {
  std::erase(text, '`');
  return text;
}

/// A quote may have code in it; asterisks in code quote nothing.
std::string without_asterisks_in_code(const std::string& text) {
  std::string kept;
  bool is_code = false;
  for (const char c : text) {
    if (c == '`') is_code = !is_code;
    if (c != '*' || !is_code) kept += c;
  }
  return kept;
}

bool is_code_block(std::string_view line) { return line.starts_with("    "); }

/// Paragraphs, and rows of tables, each as one line. Blocks of code are left out, but for their comments.
std::vector<std::string> paragraphs_of(std::string_view markdown) {
  std::vector<std::string> paragraphs(1);
  std::istringstream lines{std::string(markdown)};
  for (std::string line; std::getline(lines, line);) {
    if (is_code_block(line)) {
      const std::size_t comment = line.find(" # ");
      line = comment == std::string::npos ? "" : line.substr(comment);
    }
    const bool is_row = line.starts_with('|');
    if ((line.empty() || is_row) && !paragraphs.back().empty()) paragraphs.emplace_back();
    paragraphs.back() += (paragraphs.back().empty() ? "" : " ") + line;
    if (is_row) paragraphs.emplace_back();
  }
  return paragraphs;
}

void add_quotes(const std::string& text, std::optional<int> status, OperationsPage& page) {
  for (const std::smatch& quote : all(text, kQuote)) page.quotes.push_back({quote[2], status});
}

}  // namespace

OperationsPage parse_operations_page(std::string_view markdown) {
  OperationsPage page;
  for (const std::string& raw : paragraphs_of(markdown)) {
    const std::string paragraph = without_asterisks_in_code(raw);
    for (const std::smatch& match : all(paragraph, kHttpStatus)) page.http_statuses.push_back(std::stoi(match[1]));
    const std::string without_http = std::regex_replace(paragraph, kHttpStatus, "");
    for (const std::smatch& match : all(without_http, kBareHttpStatus)) page.stray.push_back(match[1]);

    std::smatch row;
    if (std::regex_match(paragraph, row, kStatusRow)) {
      const int status = std::stoi(row[1]);
      page.statuses.push_back({status, without_code_marks(row[2]), row[3] == "yes"});
      add_quotes(row[4], status, page);
      continue;
    }
    // Text after a status belongs to it, up to the end of the quote.
    std::string rest;
    auto from = paragraph.cbegin();
    for (const std::smatch& match : all(paragraph, kStatus)) {
      if (match[2].length() == 0) {
        page.stray.push_back(match[0]);
        continue;
      }
      const auto quote = match[2].second - 1;
      std::smatch quoted;
      if (!std::regex_search(quote, paragraph.cend(), quoted, kQuote, std::regex_constants::match_continuous)) {
        page.stray.push_back(match[0]);
        continue;
      }
      page.quotes.push_back({quoted[2], std::stoi(match[1])});
      rest.append(from, quote);
      from = quoted[0].second;
    }
    rest.append(from, paragraph.cend());
    add_quotes(rest, std::nullopt, page);
  }
  return page;
}

OperationsPage read_operations_page() {
  const char* path = std::getenv("FLAMED_OPERATIONS_PAGE");
  std::ifstream file(path == nullptr ? "" : path);
  if (!file) throw std::runtime_error("FLAMED_OPERATIONS_PAGE does not name docs/operations.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_operations_page(text);
}

bool is_quoted_from(std::string_view quote, std::string_view text) {
  bool has_words = false;
  while (!quote.empty()) {
    const std::size_t end = std::min(quote.find(kLeftOut), quote.size());
    const std::string_view words = quote.substr(0, end);
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) return false;
    has_words = has_words || words.find_first_not_of(" ;:,.") != std::string_view::npos;
    text.remove_prefix(at + words.size());
    quote.remove_prefix(std::min(end + kLeftOut.size(), quote.size()));
  }
  return has_words;
}

}  // namespace flamed::test
