// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debuginfod.h"

#include <atomic>
#include <condition_variable>

#include "symbolizer/elf/elf_facts_reader.h"
#include "symbolizer/names/debug_file_finder.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer/victims.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

/// A server that answers when the test lets it.
class Server {
 public:
  Debuginfod::Fetch fetch() {
    return [this](const std::string& build_id, const std::stop_token& stop) -> Result<Fd> {
      std::unique_lock lock(mutex_);
      asked_.push_back(build_id);
      changed_.notify_all();
      changed_.wait(lock, stop, [&] { return answers_ > 0; });
      if (stop.stop_requested()) return Error("stopped");
      --answers_;
      ++done_;
      changed_.notify_all();
      if (content.empty()) return Error("not found");
      return file_with(content);
    };
  }
  void answer() {
    std::unique_lock lock(mutex_);
    ++answers_;
    const int before = done_;
    changed_.notify_all();
    std::stop_token never;
    changed_.wait(lock, never, [&] { return done_ > before; });
  }
  std::vector<std::string> asked() {
    std::lock_guard lock(mutex_);
    return asked_;
  }
  std::string content;

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> asked_;
  int answers_ = 0;
  int done_ = 0;
};

/// Queries until there is a result: the server has answered, and its answer is being recorded.
RemoteDebugFiles::Answer settled(Debuginfod& debuginfod, const std::string& build_id) {
  for (;;) {
    RemoteDebugFiles::Answer answer = debuginfod.find(build_id);
    if (!answer.pending) return answer;
    std::this_thread::yield();
  }
}

TEST_CASE("a file is pending until the server has sent it, and no query waits") {
  ManualClock clock({0}, {0});
  Server server;
  server.content = "a debug file";
  Debuginfod debuginfod(server.fetch(), clock);
  CHECK(debuginfod.find("abcd").pending);
  CHECK(debuginfod.find("abcd").pending);
  server.answer();
  const RemoteDebugFiles::Answer answer = settled(debuginfod, "abcd");
  REQUIRE(answer.file);
  CHECK(server.asked() == std::vector<std::string>{"abcd"});
  CHECK(debuginfod.stats().fetched == 1);
}

TEST_CASE("a file that the server doesn't have is requested again only after a while") {
  ManualClock clock({0}, {0});
  Server server;
  Debuginfod debuginfod(server.fetch(), clock, {.ask_again_after_ns = 60 * kNsPerSecond});
  CHECK(debuginfod.find("abcd").pending);
  server.answer();
  CHECK_FALSE(settled(debuginfod, "abcd").file);
  CHECK(debuginfod.stats().failed == 1);
  clock.advance_ns(59 * kNsPerSecond);
  CHECK_FALSE(debuginfod.find("abcd").pending);
  clock.advance_ns(2 * kNsPerSecond);
  CHECK(debuginfod.find("abcd").pending);
}

TEST_CASE("requests beyond the queue's size are refused, not kept") {
  ManualClock clock({0}, {0});
  Server server;
  Debuginfod debuginfod(server.fetch(), clock, {.max_waiting = 2});
  int pending = 0;
  for (int i = 0; i < 100; ++i) pending += debuginfod.find("id" + std::to_string(i)).pending ? 1 : 0;
  CHECK(pending >= 2);
  CHECK(pending <= 3);  // one may already be at the server
}

TEST_CASE("it ends while the server is silent") {
  ManualClock clock({0}, {0});
  Server server;
  {
    Debuginfod debuginfod(server.fetch(), clock);
    CHECK(debuginfod.find("abcd").pending);
    while (server.asked().empty()) std::this_thread::yield();
  }
  SUCCEED("joined");
}

TEST_CASE("libdebuginfod finds a file by its build-id") {
  const std::string build_id = "00112233445566778899aabbccddeeff01234567";
  const std::string content = bytes_of((std::string(VICTIM_SPLIT) + "/stripped.debug").c_str());
  const test::TemporaryDirectory server;
  const test::TemporaryDirectory cache;
  server.write("buildid/" + build_id + "/debuginfo", content);
  Result<Debuginfod::Fetch> fetch = load_libdebuginfod("file://" + server.path().string(), cache.path("debuginfod"));
  if (!fetch) {
    WARN("SKIP: " << fetch.error().message());
    return;
  }
  const Result<Fd> file = (*fetch)(build_id, {});
  REQUIRE(file.ok());
  CHECK(read_elf_facts(file->get())->build_id == build_id);
  CHECK_FALSE((*fetch)("ffff2233445566778899aabbccddeeff01234567", {}).ok());
}

}  // namespace
}  // namespace flamed::symbolizer
