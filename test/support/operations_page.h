// SPDX-License-Identifier: Apache-2.0
//
// OperationsPage: the quotes of the program in docs/operations.md, for tests that compare them with the program. On the
// page
//   *italics*         are words of the program's, with ... for what differs or was left out
//   status N: *...*   is what it ends with when it says so; the same in row N of the table of statuses
//   HTTP NNN          is a status of its answers
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::test {

struct OperationsPage {
  struct Quote {
    std::string text;
    std::optional<int> status{};  ///< the one beside the quote on the page
  };
  struct StatusRow {
    int status = 0;
    std::string meaning;
    bool is_tried_again = false;
  };
  std::vector<StatusRow> statuses;  ///< the rows of the table
  std::vector<Quote> quotes;
  std::vector<int> http_statuses;
  /// Statuses without the message that belongs to them, and numbers that look like an HTTP status without HTTP.
  std::vector<std::string> stray;
};

OperationsPage parse_operations_page(std::string_view markdown);
/// The file that FLAMED_OPERATIONS_PAGE names.
OperationsPage read_operations_page();

/// Has `text` the words of `quote` in their order, with any text for each "..."?
bool is_quoted_from(std::string_view quote, std::string_view text);

}  // namespace flamed::test
