// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/open_jvms.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/process/proc_text.h"
#include "test/catch.h"
#include "test/support/child_process.h"
#include "test/unit/symbolizer/forwarding_reader.h"

namespace flamed::daemon {
namespace {

using Owner = ProcessMemories::Owner;

/// A process that runs until it is destroyed.
class Sleeper {
 public:
  Sleeper() : process_({"sleep", "600"}) {}
  [[nodiscard]] ProcessId id() const {
    std::array<char, 4096> buffer{};
    const auto stat = symbolizer::parse_stat(read_once("/proc/" + std::to_string(process_.pid()) + "/stat", buffer));
    REQUIRE(stat);
    return {process_.pid(), stat->start_ticks};
  }
  void end() { process_.kill(); }

 private:
  test::ChildProcess process_;
};

/// Finds what it is told to find.
class Reader final : public symbolizer::ForwardingReader {
 public:
  Result<std::optional<symbolizer::HotSpotModule>> find_hotspot(int, symbolizer::ProcessMemory memory,
                                                                const symbolizer::HotSpotMapping&) override {
    ++searches;
    fds.push_back(memory.fd);
    return found;
  }
  Result<std::optional<symbolizer::HotSpotModule>> found = std::optional(symbolizer::HotSpotModule{{}, 0x1000});
  int searches = 0;
  std::vector<int> fds;
};

struct Fixture {
  ModuleId library() {
    const ModuleId id = modules.file({8, 1, 7}, "/usr/lib/libjvm.so").module;
    if (modules.find(id)->file) return id;
    modules.want({id, {}, {}, 42, 1, 0x1000, 0x2000});
    std::stop_source stopped;
    stopped.request_stop();
    const auto request = modules.next_request(stopped.get_token());
    REQUIRE(request);
    modules.finish(*request, Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    return id;
  }
  OpenJvms::Place place(std::uint64_t exec_id = 1) {
    return {{sleeper.id(), exec_id, 1000}, library(), {0x7000'0000, 0x2000}};
  }

  SystemClock clock;
  symbolizer::ModuleTable modules{100, clock};
  symbolizer::GuardedOpener opener{clock, {.program = OPEN_HELPER_PROGRAM}};
  ProcessMemories memories{opener};
  Reader reader;
  OpenJvms jvms{modules, memories, reader};
  Sleeper sleeper;
};

TEST_CASE("a process's memory is opened once for its program") {
  Fixture f;
  const Owner owner{f.sleeper.id(), 1, 1000};
  const auto memory = f.memories.open(owner);
  REQUIRE(memory.ok());
  CHECK((*memory)->get() >= 0);
  CHECK(f.memories.open(owner).value() == *memory);
  const auto next = f.memories.open({owner.process, 2, 1000});
  REQUIRE(next.ok());
  CHECK(*next != *memory);
  CHECK(f.memories.open({owner.process, 2, 1000}).value() == *next);
}

TEST_CASE("memory of a process that has ended is not opened") {
  Fixture f;
  const ProcessId id = f.sleeper.id();
  f.sleeper.end();
  const auto memory = f.memories.open({id, 1, 1000});
  REQUIRE_FALSE(memory.ok());
  CHECK(memory.error().code() == ESRCH);
}

TEST_CASE("so many memories are open at most, the newest") {
  Fixture f;
  const Owner first{f.sleeper.id(), 1, 1000};
  const std::weak_ptr<const Fd> oldest = f.memories.open(first).value();
  std::vector<Sleeper> others(ProcessMemories::kMostOpen);
  for (std::size_t i = 0; i + 1 < others.size(); ++i) REQUIRE(f.memories.open({others[i].id(), 1, 1000}).ok());
  CHECK_FALSE(oldest.expired());
  REQUIRE(f.memories.open({others.back().id(), 1, 1000}).ok());
  CHECK(oldest.expired());
  CHECK(f.memories.open(first).ok());
}

TEST_CASE("where the memory of three processes does not answer, their user's are not read any more") {
  Fixture f;
  const Owner owner{f.sleeper.id(), 1, 1000};
  const Error late("no answer", ETIMEDOUT);
  const auto fail = [&](std::int32_t pid, const Error& error, std::int64_t took_ns = ProcessMemories::kStuckNs) {
    f.memories.note_failure({{pid, 1}, 1, 1000}, error, took_ns);
  };
  for (int i = 0; i < 5; ++i) fail(1, late);
  fail(2, late);
  fail(3, late, ProcessMemories::kStuckNs - 1);
  fail(3, Error("the worker is away", EAGAIN));
  fail(3, Error("it is still being loaded", EBUSY));
  CHECK(f.memories.open(owner).ok());
  fail(3, late);
  CHECK(f.memories.is_stuck(1000));
  const auto memory = f.memories.open(owner);
  REQUIRE_FALSE(memory.ok());
  CHECK(memory.error().message() == "memory of processes of its user does not answer");
  CHECK_FALSE(f.memories.is_stuck(1001));
  CHECK(f.memories.open({owner.process, 1, 1001}).ok());
}

TEST_CASE("a JVM's layout is read once for its program, by the memory that is open") {
  Fixture f;
  const auto jvm = f.jvms.open(f.place());
  REQUIRE(jvm.ok());
  CHECK((*jvm)->base == 0x7000'0000 - 0x2000 - 0x1000);
  CHECK((*jvm)->memory == f.memories.open(f.place().owner).value());
  for (int i = 0; i < 3; ++i) {
    f.memories.note_failure({{i, 1}, 1, 1001}, Error("no answer", ETIMEDOUT), ProcessMemories::kStuckNs);
  }
  CHECK(f.jvms.open(f.place()).value() == *jvm);
  OpenJvms::Place of_stuck_user = f.place();
  of_stuck_user.owner.user = 1001;
  CHECK_FALSE(f.jvms.open(of_stuck_user).ok());
  CHECK(f.reader.fds == std::vector<int>{(*jvm)->memory->get()});
  const auto next = f.jvms.open(f.place(2));
  REQUIRE(next.ok());
  CHECK(*next != *jvm);
  CHECK(f.reader.searches == 2);
}

TEST_CASE("a JVM that is still starting is asked again, and what is none, or can't be read, is told apart") {
  Fixture f;
  const auto code_of = [&] {
    const auto jvm = f.jvms.open(f.place());
    return jvm ? 0 : jvm.error().code();
  };
  CHECK(f.jvms.open({f.place().owner, f.modules.file({8, 1, 8}, "/usr/lib/libjvm.so").module, {}}).error().code() ==
        EAGAIN);
  CHECK(f.reader.searches == 0);
  f.reader.found = Error("it is still being loaded", EBUSY);
  CHECK(code_of() == EBUSY);
  f.reader.found = Error("the worker is away", EAGAIN);
  CHECK(code_of() == EAGAIN);
  f.reader.found = Error("HotSpot: the file has no code");
  CHECK(code_of() == ENOTSUP);
  f.reader.found = std::optional<symbolizer::HotSpotModule>();
  CHECK(code_of() == ENOTSUP);
  f.reader.found = std::optional(symbolizer::HotSpotModule{});
  CHECK(code_of() == 0);
  CHECK(f.reader.searches == 5);
}

}  // namespace
}  // namespace flamed::daemon
