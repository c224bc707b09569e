// SPDX-License-Identifier: Apache-2.0
//
// docs/operations.md quotes the program's messages and exit statuses exactly.
#include "test/support/operations_page.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/problem.h"
#include "api/render/stack_frames.h"
#include "api/socket/listening_socket.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/config/config.h"
#include "daemon/config/refusal.h"
#include "daemon/machine/locked_memory.h"
#include "daemon/sampler/verifier_log.h"
#include "daemon/unwind/unwind_publisher.h"
#include "daemon/vitals.h"
#include "symbolizer/names/kernel_symbols.h"
#include "symbolizer/names/module_symbolizer.h"
#include "test/catch.h"
#include "test/support/captured_log.h"
#include "test/unit/api/answer/fake_sources.h"
#include "test/unit/api/answer/roots_router.h"
#include "test/unit/daemon/budget/budgeted_machine.h"

namespace flamed::daemon {
namespace {

/// A message of the program, and its exit status after it.
struct Message {
  std::string text;
  std::optional<ExitStatus> status{};
};

std::string message_of_flags(const std::vector<const char*>& flags) {
  const Result<CommandLine> line = parse_command_line(flags);
  REQUIRE_FALSE(line);
  return line.error().message();
}

std::string message_of_json(const std::string& text) {
  Config config;
  const Status applied = apply_json(text, config);
  REQUIRE_FALSE(applied);
  return applied.error().message();
}

std::string message_of_listening(const api::ListenAddress& address) {
  const Result<api::ListeningSocket> socket = api::ListeningSocket::open(address, api::Reach::kThisHost);
  REQUIRE_FALSE(socket);
  return socket.error().message();
}

std::string message_of_a_taken_port() {
  api::ListenAddress address{.host = "127.0.0.1", .port = 0};
  const Result<api::ListeningSocket> first = api::ListeningSocket::open(address, api::Reach::kThisHost);
  REQUIRE(first);
  address.port = first->endpoint()->port;
  return message_of_listening(address);
}

/// Nothing is sampled for a minute although the machine is busy; after that nothing is drained.
std::vector<Message> messages_of_vitals() {
  const auto problem = [](MonotonicTime last_drain) {
    VitalSigns signs{.now = {kNsPerMinute}, .last_drain = {kNsPerMinute}, .busy_ns = 0};
    Vitals vitals(signs);
    vitals.tick(signs);
    signs = {.now = {2 * kNsPerMinute}, .last_drain = last_drain, .busy_ns = kNsPerMinute};
    vitals.tick(signs);
    return vitals.verdict().problem;
  };
  return {{problem({2 * kNsPerMinute})}, {problem({kNsPerMinute})}};
}

std::string message_of_the_budget() {
  BudgetedMachine machine({0.003, "default"});
  const test::CapturedLog log;
  machine.run(3, 0.004);
  return log.text();
}

std::string message_without_tables() {
  const test::CapturedLog log;
  UnwindPublisher::log_no_tables("they are switched off");
  return log.text();
}

std::vector<Message> all_messages() {
  std::vector<Message> messages;
  for (const RefusalText& text : refusal_texts()) {
    messages.push_back({std::string(text.remedy), text.status});
    for (const int code : {EPERM, EACCES}) {
      const Error error = Error::from_errno("perf_event_open", code).with_context("cannot start sampling");
      messages.push_back({error.message() + "; " + std::string(text.remedy), text.status});
    }
  }
  const LockedMemoryFacts no_memory{.limit_bytes = 65536, .counts_bpf = true, .answers_bpf = true};
  messages.push_back({explain_bpf_memory(Error("refused", EPERM), no_memory).message(), ExitStatus::kNoResources});
  messages.push_back({explain_perf_memory(Error("refused", EPERM), no_memory).message(), ExitStatus::kNoResources});

  messages.push_back({message_of_flags({"--frequenzy", "1"}), ExitStatus::kUsage});
  messages.push_back({message_of_flags({"--retention", "yesterday"}), ExitStatus::kUsage});
  messages.push_back({message_of_flags({"--listen", "0.0.0.0:9090"}), ExitStatus::kUsage});
  messages.push_back({message_of_json(R"({"frequency": 99})"), ExitStatus::kUsage});
  messages.push_back({message_of_listening({.host = "0.0.0.0", .port = 9090}), ExitStatus::kCannotListen});
  messages.push_back({message_of_a_taken_port(), ExitStatus::kCannotListen});

  for (Message& message : messages_of_vitals()) messages.push_back(std::move(message));
  messages.push_back({message_of_the_budget()});
  messages.push_back({message_without_tables()});
  const std::string long_log = [] {
    std::string lines;
    for (int i = 0; i < 100; ++i) lines += "1: (b7) r1 = 0\n";
    return lines + "R0 invalid mem access 'scalar'\n";
  }();
  messages.push_back({describe_end(keep_verifier_log("sample_cpu", long_log))});
  messages.push_back({describe_whole(keep_verifier_log("sample_cpu", long_log))});

  messages.push_back({symbolizer::parse_kallsyms("0000000000000000 T schedule\n", {}).error().message()});
  messages.push_back({symbolizer::kOnlyDynamicSymbols});
  messages.push_back({Error::from_errno("opening it", EACCES).message()});
  messages.push_back({Error::from_errno("opening it", ENOENT).message()});
  for (const store::Truncation reason : {store::Truncation::kDepthLimit, store::Truncation::kUserShare})
    messages.push_back({store::marker_of(reason)});
  return messages;
}

const test::OperationsPage& page() {
  static const test::OperationsPage page = test::read_operations_page();
  return page;
}

TEST_CASE("every message that the page quotes exists in the program, with its exit status") {
  const std::vector<Message> messages = all_messages();
  CHECK(page().quotes.size() > 30);
  for (const auto& quote : page().quotes) {
    CAPTURE(quote.text, quote.status.value_or(-1));
    CHECK(std::any_of(messages.begin(), messages.end(), [&](const Message& message) {
      const bool has_status = message.status && static_cast<int>(*message.status) == quote.status;
      return test::is_quoted_from(quote.text, message.text) && (!quote.status || has_status);
    }));
  }
}

TEST_CASE("the page quotes every message about a refusal by the kernel") {
  for (const RefusalText& text : refusal_texts()) {
    CAPTURE(text.remedy);
    CHECK(std::any_of(page().quotes.begin(), page().quotes.end(), [&](const auto& quote) {
      return quote.status == static_cast<int>(text.status) && test::is_quoted_from(quote.text, text.remedy);
    }));
  }
}

TEST_CASE("the page's table of exit statuses is the program's") {
  REQUIRE(page().statuses.size() == exit_statuses().size());
  for (std::size_t i = 0; i < page().statuses.size(); ++i) {
    const test::OperationsPage::StatusRow& row = page().statuses[i];
    const ExitStatusMeaning& own = exit_statuses()[i];
    CHECK(row.status == static_cast<int>(own.status));
    CHECK(row.meaning == own.meaning);
    CHECK(row.is_tried_again == own.is_tried_again);
  }
}

TEST_CASE("the systemd unit restarts flamed after exactly the statuses that say so") {
  const char* path = std::getenv("FLAMED_UNIT");
  REQUIRE(path != nullptr);
  std::ifstream unit(path);
  std::string kept_down;
  for (std::string line; std::getline(unit, line);) {
    constexpr std::string_view kKey = "RestartPreventExitStatus=";
    if (line.starts_with(kKey)) kept_down = line.substr(kKey.size());
  }
  std::string expected;
  for (const ExitStatusMeaning& one : exit_statuses()) {
    if (one.is_tried_again || one.status == ExitStatus::kEnded) continue;  // Restart=on-failure
    expected += (expected.empty() ? "" : " ") + std::to_string(static_cast<int>(one.status));
  }
  CHECK(kept_down == expected);
}

TEST_CASE("the page names only HTTP statuses that the API has") {
  std::set<int> answered{api::unknown_user().status};
  api::FakeSources sources;
  api::RootsRouter router(sources, [](WallTime) { return 0; });
  for (const bool is_well : {true, false}) {
    sources.health_.healthy = sources.health_.ready = is_well;
    for (const char* path : {"/healthz", "/readyz"}) answered.insert(router.handle({"GET", path, "", false}).status);
  }
  CHECK(answered == std::set<int>{200, 403, 503});
  CHECK(page().http_statuses.size() >= 3);
  for (const int status : page().http_statuses) CHECK(answered.count(status) == 1);
}

TEST_CASE("each status on the page has its message, and each HTTP status is named as one") {
  for (const std::string& stray : page().stray) FAIL_CHECK(stray);
  SUCCEED();
}

TEST_CASE("the page's parser reads quotes and statuses") {
  const test::OperationsPage read = test::parse_operations_page(
      "**Bold.** It ends with\nstatus 5: *it lacks\n...: do it* and HTTP 503 (*sampling\nhas stalled*), `a *b*`.\n\n"
      "| 8 | a `filter` or a user | no | *one ...*, or *`two`* |\n"
      "| `sampler` | status 9 | 503 |\n\n"
      "    curl h/       # HTTP 200\n    curl --user=*** -s *x*\n");
  std::vector<std::string> quotes;
  for (const auto& quote : read.quotes) quotes.push_back(std::to_string(quote.status.value_or(-1)) + " " + quote.text);
  CHECK(quotes == std::vector<std::string>{"5 it lacks ...: do it", "-1 sampling has stalled", "8 one ...", "8 `two`"});
  REQUIRE(read.statuses.size() == 1);
  CHECK(read.statuses[0].status == 8);
  CHECK(read.statuses[0].meaning == "a filter or a user");
  CHECK_FALSE(read.statuses[0].is_tried_again);
  CHECK(read.http_statuses == std::vector<int>{503, 200});
  CHECK(read.stray == std::vector<std::string>{"503", "status 9"});
}

TEST_CASE("a quote may leave out text only where it has dots") {
  CHECK(test::is_quoted_from("it lacks ...: run it", "cannot start: it lacks CAP_BPF: run it as root"));
  CHECK(test::is_quoted_from("it lacks", "it lacks CAP_BPF"));
  CHECK_FALSE(test::is_quoted_from("it lacks: run it", "it lacks CAP_BPF: run it as root"));
  CHECK_FALSE(test::is_quoted_from("run it ... it lacks", "it lacks CAP_BPF: run it as root"));
  CHECK_FALSE(test::is_quoted_from("...", "anything"));
  CHECK_FALSE(test::is_quoted_from("", "anything"));
}

}  // namespace
}  // namespace flamed::daemon
