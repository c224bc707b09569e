// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/late_walks.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/flow/ingest.h"
#include "daemon/flow/wait_intake.h"
#include "store/model/wait_reason.h"
#include "store/query/query.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/flow/path_namer.h"
#include "test/unit/daemon/sampler/record_bytes.h"
#include "test/unit/daemon/sampler/slice_ring.h"
#include "test/unit/daemon/unwind/fake_programs.h"
#include "test/unit/daemon/unwind/fake_unwind_maps.h"
#include "test/unit/daemon/unwind/unwind_publisher_fixture.h"
#include "test/unit/symbolizer_processes/fake_proc.h"

namespace flamed::daemon {
namespace {

using store::Truncation;
using Record = std::vector<std::byte>;

constexpr std::int64_t kStartNs = 1000 * kNsPerSecond;
constexpr std::int64_t kWallOffsetNs = 1'700'000'000 * kNsPerSecond;
constexpr std::uint64_t kProgram = 0x400000;
constexpr std::uint64_t kLibrary = 0x7f0000000000;
constexpr std::uint64_t kSp = 0x7ffc00000010;
constexpr std::uint64_t kStartTicks = 5000;
constexpr std::uint64_t kFutex = 0xffffffff81000010;
constexpr std::uint64_t kProgramFile = 7, kLibraryFile = 8;
/// Functions of both files, by file offset: frames of 16 bytes, of 32 bytes, and the outermost.
constexpr std::uint64_t kSmall = 0x1000, kLarge = 0x2000, kOutermost = 0x3000, kEnd = 0x4000;

MonotonicTime at(std::int64_t ms) { return {kStartNs + ms * kNsPerMs}; }

EventBatch::Round round(std::int64_t began_ms) { return {at(began_ms), at(began_ms + 100)}; }

unwinder::UnwindRows rows_of_file() {
  unwinder::UnwindRows rows;
  unwinder::Rule outermost;
  outermost.cfa = unwinder::CfaKind::kOutermost;
  rows.rules = {unwinder::Rule{}, unwinder::Rule{}, test::rule_of(16), test::rule_of(32), outermost};
  rows.rows = {{kSmall, unwinder::RuleId{2}},
               {kLarge, unwinder::RuleId{3}},
               {kOutermost, unwinder::RuleId{4}},
               {kEnd, unwinder::RuleId{0}}};
  return rows;
}

/// From side-band records, samples and slices to the store.
struct Pipeline {
  Pipeline() { slices.add_ring(0, ring.memory()); }

  void feed(std::int64_t ms, const std::vector<Record>& records, bool is_lossy = false,
            const std::vector<EventBatch::Round>& rounds = {}) {
    clock.advance_ns(at(ms).ns - clock.monotonic().ns);
    EventBatch batch;
    EventBatch later;
    for (const Record& record : records) batch.append(read_head(record));
    batch.sort_and_split(at(ms), later);
    batch.drained_at = at(ms);
    if (is_lossy) batch.side_band_lost_from = at(0);
    batch.rounds = rounds;
    ingest.apply(batch);
  }
  void look_again(std::int64_t ms) {
    clock.advance_ns(at(ms).ns - clock.monotonic().ns);
    ingest.walk_late();
  }
  /// The rows of both files are in the tables from now on.
  void publish_rows(std::uint64_t inode) {
    CHECK(publisher.publish_rows(module(inode), rows_of_file()) == UnwindPublisher::Outcome::kDone);
  }
  ModuleId module(std::uint64_t inode) { return modules.file({8, 1, inode}, path_of(inode)).module; }
  static std::string path_of(std::uint64_t inode) { return "/bin/file" + std::to_string(inode); }

  [[nodiscard]] store::Profile profile() const {
    test::PathNamer namer(modules);
    const store::WallWindow everything{{0}, {clock.wall().ns + kNsPerMinute}};
    return store::build_profile(store.snapshot(), {everything, {store::ProcessSelector{100, std::nullopt}}}, namer);
  }
  [[nodiscard]] std::vector<std::string> stacks() const { return test::stacks_of(profile()); }
  [[nodiscard]] store::Profile waiting_profile() const {
    test::PathNamer namer(modules);
    const store::WallWindow everything{{0}, {clock.wall().ns + kNsPerMinute}};
    return store::build_profile(store::measured(store.snapshot(), store::Measure::kWait, false),
                                {everything, {store::ProcessSelector{100, std::nullopt}}}, namer);
  }
  [[nodiscard]] std::vector<std::string> waiting_stacks() const { return test::stacks_of(waiting_profile()); }
  [[nodiscard]] store::Quality waiting_quality() const { return waiting_profile().quality; }

  test::FakeProc proc;
  ManualClock clock{MonotonicTime{kStartNs}, WallTime{kStartNs + kWallOffsetNs}};
  store::Store store{{}, clock, 10 * kNsPerMs};
  symbolizer::ModuleTable modules{100, clock};
  symbolizer::ProcessTracker processes{modules, clock, proc.path()};
  test::FakeUnwindMaps maps;
  UnwindPublisher publisher{maps, 1U << 20, clock};
  symbolizer::ProcessDetails details{symbolizer::CommandLines::kFull, proc.path(), {proc.path()}};
  test::SliceRing ring;
  StackSlices slices;
  std::vector<std::int32_t> read_again;
  LateWalks late{{.slices = slices,
                  .processes = processes,
                  .modules = modules,
                  .unwind = publisher,
                  .store = store,
                  .read_again = [this](std::int32_t tid) { read_again.push_back(tid); }}};
  symbolizer::RuntimeFunctions names{16U << 10};
  WaitIntake waits{store, names,
                   [](std::uint64_t address) { return std::string(address == kFutex ? "futex_wait" : "f"); }};
  test::FakePrograms programs;
  KnownPrograms known_programs{programs};
  Ingest ingest{
      processes,
      details,
      modules,
      store,
      clock,
      {.unwind = &publisher, .late_walks = &late, .waits = &waits, .programs = &known_programs, .functions = &names}};

  static Record map(std::int64_t ms, std::uint64_t start, std::uint64_t inode) {
    return test::mapping_record(at(ms), 100, start, 0x10000, 0, inode, path_of(inode));
  }
  /// Process 100 begins, and maps the program and the library.
  static std::vector<Record> program(std::int64_t ms) {
    return {test::task_record(PERF_RECORD_FORK, at(ms), 100, 1, 100),
            test::comm_record(at(ms + 1), 100, 100, "program", true), map(ms + 2, kProgram, kProgramFile),
            map(ms + 3, kLibrary, kLibraryFile)};
  }
  /// Interrupted in the library's small function, which the program's large one called, which the outermost called.
  Record sample(std::int64_t ms, std::size_t words = 6, std::uint8_t user_end = FLAMED_END_NO_PROCESS) {
    const std::vector<std::uint64_t> stack{0, kProgram + kLarge + 4, 0, 0, 0, kProgram + kOutermost + 4};
    test::SampleFields fields;
    fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick + 7;
    fields.user_end = user_end;
    fields.user = {kLibrary + kSmall + 8};
    fields.slice =
        ring.put(fields.user[0], kSp, 0, {stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(words)});
    return test::sample_record(at(ms), fields);
  }

  /// Waits for a lock in the library's small function, in the wait number `switches`.
  Record visit(std::int64_t ms, std::uint64_t switches, std::int64_t last_seen_ms, bool has_slice,
               flamed_wait_stack outcome = FLAMED_STACK_READ, const std::string& holder = "") {
    const std::vector<std::uint64_t> stack{0, kProgram + kLarge + 4, 0, 0, 0, kProgram + kOutermost + 4};
    test::SampleFields fields;
    fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick + 7;
    fields.user_end = FLAMED_END_NO_REGISTERS;
    fields.kernel = {kFutex, kFutex + 0x100};
    fields.weight_ns = 0;
    if (has_slice) fields.slice = ring.put(kLibrary + kSmall + 8, kSp, 0, stack);
    flamed_wait wait{};
    wait.thread_start_ns = 77;
    wait.switches = switches;
    wait.state = FLAMED_SLEEPS;
    wait.known = FLAMED_KNOWS_REGISTERS;
    wait.stack = static_cast<__u8>(outcome);
    if (!holder.empty()) wait.holder = 101;
    std::copy(holder.begin(), holder.end(), wait.holder_comm);
    wait.last_seen_ns = last_seen_ms == 0 ? 0 : static_cast<std::uint64_t>(at(last_seen_ms).ns);
    return test::visit_record(at(ms), wait, fields);
  }
};

std::vector<Record> with(std::vector<Record> records, const Record& more) {
  records.push_back(more);
  return records;
}

constexpr const char* kWhole = "/bin/file7+3003;/bin/file7+2003;/bin/file8+1008 1";

TEST_CASE("a new program whose files' rows stand is walked at once, by the mappings of its moment") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  // Something else is mapped there in the same batch, after the sample.
  p.feed(1000, with(with(Pipeline::program(10), p.sample(20)), Pipeline::map(30, kLibrary, 9)));
  CHECK(p.stacks() == std::vector<std::string>{kWhole});
  CHECK(p.store.stats().quality.whole == 1);
  CHECK(p.late.stats().walked == 1);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.ring.is_clear());
}

TEST_CASE("a sample waits for rows, is pending in answers meanwhile, and whole afterwards") {
  Pipeline p;
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.sample(20)));
  CHECK(p.ingest.has_waiting());
  CHECK(p.profile().quality.pending == 1);
  CHECK(p.profile().quality.stored() == 0);
  CHECK(p.store.stats().quality.taken() == 0);
  // The process ends, and its mappings with it.
  p.feed(1100, {test::task_record(PERF_RECORD_EXIT, at(1050), 100, 1, 100)});
  CHECK(p.ingest.has_waiting());
  p.publish_rows(kProgramFile);
  p.look_again(1200);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.stacks() == std::vector<std::string>{kWhole});
  CHECK(p.profile().quality.pending == 0);
  CHECK(p.profile().quality.whole == 1);
  CHECK(p.ring.is_clear());
}

TEST_CASE("a sample whose rows do not come in time is stored as it came") {
  Pipeline p;
  p.feed(1000, with(Pipeline::program(10), p.sample(20)));
  p.look_again(2999);
  CHECK(p.ingest.has_waiting());
  p.look_again(3000);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.store.stats().quality.truncated[static_cast<std::size_t>(Truncation::kNewProcess)] == 1);
  CHECK(p.late.stats().given_up == 1);
  CHECK(p.late.stats().walked == 0);
  CHECK(p.ring.is_clear());
}

TEST_CASE("a sample that was drained late waits as long for rows") {
  Pipeline p;
  p.feed(5000, with(Pipeline::program(10), p.sample(20)));
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.look_again(6900);
  CHECK(p.stacks() == std::vector<std::string>{kWhole});
}

TEST_CASE("a program is known to need no tables once a process that was walked without them has ended") {
  Pipeline p;
  p.feed(1000, with(Pipeline::program(10), p.sample(20)));
  p.feed(1100, {test::task_record(PERF_RECORD_EXIT, at(1050), 100, 1, 100)});
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.look_again(1200);
  // Its rows were not at hand.
  CHECK(p.programs.entries.empty());
  p.feed(1300, with(Pipeline::program(1210), p.sample(1220)));
  CHECK(p.programs.entries.empty());
  p.feed(1400, {test::task_record(PERF_RECORD_EXIT, at(1350), 100, 1, 100)});
  REQUIRE(p.programs.entries.size() == 1);
  const auto& [file, program] = *p.programs.entries.begin();
  CHECK(file == std::pair<std::uint64_t, std::uint64_t>(kProgramFile, 8U << FLAMED_DEVICE_MINOR_BITS | 1));
  CHECK(program.layout == FLAMED_NO_RUNTIME);
}

TEST_CASE("samples that wait at the end are stored as they came") {
  Pipeline p;
  p.feed(1000, with(Pipeline::program(10), p.sample(20)));
  p.ingest.finish();
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.store.stats().quality.truncated_total() == 1);
}

TEST_CASE("a stack that is longer than its slice keeps what was walked") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.sample(20, 5)));
  INFO(p.stacks().at(0));
  CHECK(p.store.stats().quality.truncated[static_cast<std::size_t>(Truncation::kSliceEnded)] == 1);
  CHECK(p.stacks().size() == 1);
  CHECK(p.stacks()[0].ends_with("/bin/file7+2003;/bin/file8+1008 1"));
}

/// PathNamer's names of the two kernel functions, and of the reason, which is at no address of the kernel's.
const std::string kInFutex = ";[kernel]+10f;[kernel]+10;[kernel]+200000007f000002 ";
static_assert(store::wait_frame(store::WaitReason::kLock).offset == (std::uint64_t{1} << 61) + 2);
constexpr const char* kWalked = "/bin/file7+3003;/bin/file7+2003;/bin/file8+1008";

TEST_CASE("a thread that waits has its time, its whole stack, and why it waits as the innermost frame") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, true)));
  CHECK(p.waiting_stacks().empty());
  // Until 600 ms it was in the first wait; the second visit stands for the time since then.
  p.feed(2000, {p.visit(1100, 2, 600, true)}, false, {round(1050)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "10000"});
  CHECK(p.ring.is_clear());
  CHECK(p.stacks().empty());
}

TEST_CASE("a thread is taken to stay in its wait until the last round, or its end") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, true)), false, {round(900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "8000"});
  // Of the rounds since the last batch, the one at 2450 ms had not ended when the thread did.
  p.feed(3000, {test::task_record(PERF_RECORD_EXIT, at(2500), 100, 1, 100)}, false,
         {round(1200), round(1900), round(2450), round(2900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "18000"});
}

TEST_CASE("a thread that ends before the first round after its visit was seen only by that visit") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, true)), false, {round(900)});
  p.feed(3000, {test::task_record(PERF_RECORD_EXIT, at(1500), 100, 1, 100)}, false, {round(1900), round(2900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "8000"});
}

TEST_CASE("a wait whose rows come later gets its whole stack then") {
  Pipeline p;
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, true)), false, {round(900)});
  CHECK(p.ingest.has_waiting());
  CHECK(p.profile().quality.pending == 0);
  REQUIRE(p.waiting_stacks().size() == 1);
  CHECK(p.waiting_stacks()[0].find("/bin/file8+1008") != std::string::npos);
  p.publish_rows(kProgramFile);
  p.look_again(1200);
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "8000"});
}

TEST_CASE("a wait whose rows do not come has its stack read again later") {
  Pipeline p;
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, true)), false, {round(900)});
  CHECK(p.read_again.empty());
  p.look_again(3000);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.read_again == std::vector<std::int32_t>{100});
  // It is still in that wait, and the rows stand.
  p.publish_rows(kProgramFile);
  p.feed(5000, {p.visit(4500, 1, 0, true)}, false, {round(4900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "48000"});
}

TEST_CASE("a wait whose stack is left for later gets it then") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, false, FLAMED_STACK_LATER)), false, {round(900)});
  REQUIRE(p.waiting_stacks().size() == 1);
  CHECK(p.waiting_stacks()[0].find(kWalked) == std::string::npos);
  p.feed(2000, {p.visit(1500, 1, 0, true)}, false, {round(1900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "18000"});
  // And keeps it when it is met again.
  p.feed(3000, {p.visit(2500, 1, 0, false, FLAMED_STACK_KNOWN)}, false, {round(2900)});
  CHECK(p.waiting_stacks() == std::vector<std::string>{kWalked + kInFutex + "28000"});
}

TEST_CASE("a wait without a user stack has its kernel functions, and says why") {
  const auto [outcome, reason] = GENERATE(table<flamed_wait_stack, Truncation>({
      {FLAMED_STACK_LATER, Truncation::kStackLater},
      {FLAMED_STACK_RAN, Truncation::kStackRan},
      {FLAMED_STACK_LATE, Truncation::kStackNotRead},
      {FLAMED_STACK_WANTED, Truncation::kStackNotRead},
      {FLAMED_STACK_ABSENT, Truncation::kUnreadableStack},
  }));
  Pipeline p;
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, false, outcome)), false, {round(900)});
  REQUIRE(p.waiting_stacks().size() == 1);
  CAPTURE(outcome, p.waiting_stacks()[0]);
  CHECK(p.waiting_stacks()[0].ends_with(kInFutex.substr(1) + "8000"));
  CHECK(p.waiting_quality().truncated[static_cast<std::size_t>(reason)] == 8000);
}

TEST_CASE("who holds the lock stands in front of the reason, and only of a lock") {
  Pipeline p;
  const bool is_lock = GENERATE(true, false);
  test::SampleFields fields;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick + 7;
  fields.user_end = FLAMED_END_NO_REGISTERS;
  fields.kernel = {is_lock ? kFutex : kFutex + 0x100};
  flamed_wait wait{};
  wait.state = FLAMED_SLEEPS;
  wait.holder = 4711;
  std::strcpy(wait.holder_comm, "a worker");
  p.feed(1000, with(Pipeline::program(10), test::visit_record(at(100), wait, fields)), false, {round(900)});
  REQUIRE(p.waiting_stacks().size() == 1);
  const std::string stack = p.waiting_stacks()[0];
  CAPTURE(stack);
  const auto name = p.names.enter(symbolizer::SymbolKind::kUnknown, "a worker", "", fields.owner);
  REQUIRE(name);
  CHECK(p.names.stats().functions == 1);
  const Frame holder = store::holder_frame(*name, 4711);
  CHECK(store::holder_in(holder)->tid == 4711);
  std::ostringstream text;
  text << std::hex << holder.offset - test::kKernel;
  CHECK((stack.find("[kernel]+" + text.str() + ";") != std::string::npos) == is_lock);
}

TEST_CASE("where the code before a return address can't be read, callers of code without rows are not guessed") {
  constexpr std::uint64_t kJit = 0x7e0000000000;
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  test::SampleFields fields;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick + 7;
  fields.user_end = FLAMED_END_NO_PROCESS;
  fields.user = {kJit + 0x40};
  // The frame pointer leads nowhere.
  fields.slice = p.ring.put(kJit + 0x40, kSp, 0x1234, {0, kProgram + kLarge + 4, 0, 0, 0, kProgram + kOutermost + 4});
  p.feed(1000, with(with(Pipeline::program(10), test::mapping_record(at(15), 100, kJit, 0x1000, 0, 0, "//anon")),
                    test::sample_record(at(20), fields)));
  CHECK(p.late.stats().walked == 1);
  CHECK(p.profile().quality.guessed() == 0);
  CHECK(p.store.stats().quality.truncated[static_cast<std::size_t>(Truncation::kNoUnwindInformation)] == 1);
}

TEST_CASE("names of threads that held locks are kept as long as stacks have them, also without runtimes") {
  Pipeline p;
  p.feed(1000, with(Pipeline::program(10), p.visit(100, 1, 0, false, FLAMED_STACK_LATER, "keeper")), false,
         {round(900)});
  REQUIRE(p.names.stats().functions == 1);
  for (int i = 0; !p.names.is_crowded(); ++i) {
    REQUIRE(p.names.enter(symbolizer::SymbolKind::kUnknown, "gone " + std::to_string(i), "", 0));
  }
  p.feed(12'000, {});
  CHECK(p.names.stats().functions == 1);
  CHECK_FALSE(p.names.is_crowded());
}

TEST_CASE("where mappings are in doubt the stack of a wait is read again") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, Pipeline::program(10));
  p.feed(2000, {p.visit(1500, 1, 0, true)}, true, {round(1900)});
  CHECK(p.waiting_quality().truncated[static_cast<std::size_t>(Truncation::kNoMapping)] == 4000);
  CHECK(p.read_again == std::vector<std::int32_t>{100});
  CHECK(p.ring.is_clear());
}

TEST_CASE("where mappings are in doubt a sample is stored as it came") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  p.feed(1000, Pipeline::program(10));
  p.feed(2000, {p.sample(1500)}, true);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.late.stats().walked == 0);
  CHECK(p.store.stats().quality.truncated_total() == 1);
  CHECK(p.ring.is_clear());
}

TEST_CASE("within an exec there is no user stack, and the kernel's is whole") {
  Pipeline p;
  p.publish_rows(kProgramFile);
  p.publish_rows(kLibraryFile);
  // The old program's library is not mapped yet.
  std::vector<Record> records = Pipeline::program(10);
  records.pop_back();
  test::SampleFields fields;
  fields.start_boottime_ns = kStartTicks * ProcessId::kNsPerTick + 7;
  fields.user_end = FLAMED_END_NO_PROCESS;
  fields.user = {kLibrary + kSmall + 8};
  fields.kernel = {test::kKernel + 0x10};
  fields.slice = p.ring.put(fields.user[0], kSp, 0, {0, kProgram + kLarge + 4});
  records.push_back(test::sample_record(at(20), fields));
  p.feed(1000, with(records, Pipeline::map(30, kLibrary, kLibraryFile)));
  CHECK(p.store.stats().quality.whole == 1);
  CHECK(p.stacks() == std::vector<std::string>{"[kernel]+10 1"});
  CHECK(p.ring.is_clear());
  // From now on the new program runs.
  p.feed(2000, {p.sample(1500)});
  CHECK(p.store.stats().quality.whole == 2);
  fields.user = {kLibrary - 8};
  fields.slice = {};
  p.feed(3000, {test::sample_record(at(2500), fields)});
  CHECK(p.store.stats().quality.whole == 2);
  CHECK(p.store.stats().quality.truncated_total() == 1);
}

/// The program has 64 MiB of code.
std::vector<Record> large_program(std::int64_t ms) {
  std::vector<Record> records = Pipeline::program(ms);
  records.push_back(test::mapping_record(at(ms + 4), 100, kProgram, 64U << 20, 0, kProgramFile, "/bin/file7"));
  return records;
}

TEST_CASE("in the first half minute all rows of a large file are waited for") {
  Pipeline p;
  p.publish_rows(kLibraryFile);
  p.feed(1000, with(large_program(10), p.sample(20)));
  CHECK(p.ingest.has_waiting());
  CHECK(p.publisher.take_wanted_functions(p.module(kProgramFile)).empty());
  p.publish_rows(kProgramFile);
  p.look_again(1100);
  CHECK(p.stacks() == std::vector<std::string>{kWhole});
}

TEST_CASE("later only those of the functions are, to which a large file's stack may return") {
  Pipeline p;
  p.publish_rows(kLibraryFile);
  p.feed(40'000, {});
  p.feed(41'000, with(large_program(40'010), p.sample(40'020)));
  CHECK(p.ingest.has_waiting());
  const std::vector<std::uint64_t> wanted = p.publisher.take_wanted_functions(p.module(kProgramFile));
  CHECK(wanted == std::vector<std::uint64_t>{kLarge + 3, kOutermost + 3});
  // The second one is not described: it is walked by its frame pointer, which is 0.
  unwinder::UnwindRows large;
  large.base = kLarge;
  large.rules = {unwinder::Rule{}, unwinder::Rule{}, test::rule_of(32)};
  large.rows = {{0, unwinder::RuleId{2}}, {0x100, unwinder::RuleId{0}}};
  p.publisher.add_functions(p.module(kProgramFile), wanted, std::vector<unwinder::UnwindRows>{large, {}});
  p.look_again(41'100);
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.stacks() == std::vector<std::string>{kWhole});
  // What is known is not asked for again.
  p.feed(42'000, {p.sample(41'500)});
  CHECK_FALSE(p.ingest.has_waiting());
  CHECK(p.store.stats().quality.whole == 2);
}

}  // namespace
}  // namespace flamed::daemon
