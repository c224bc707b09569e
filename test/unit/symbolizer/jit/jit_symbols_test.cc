// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/jit_symbols.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "test/catch.h"
#include "test/support/manual_clock.h"
#include "test/unit/symbolizer/forwarding_reader.h"

namespace flamed::symbolizer {
namespace {

class CountingReader final : public ForwardingReader {
 public:
  Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) override {
    ++reads;
    if (throws) throw std::runtime_error("worker died");
    if (clock != nullptr) clock->advance_ns(takes_ns);
    return ForwardingReader::read_jit_symbols(fd, format);
  }
  int reads = 0;
  bool throws = false;
  ManualClock* clock = nullptr;
  std::int64_t takes_ns = 0;
};

JitFilePtr file_of(const std::string& text, const std::string& path = "/tmp/perf-1.map",
                   JitFormat format = JitFormat::kPerfMap) {
  auto file = std::make_shared<JitFile>();
  file->format = format;
  file->path = path;
  file->file.reset(::memfd_create("jit", MFD_CLOEXEC));
  REQUIRE(::pwrite(file->file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  return file;
}

void append(const JitFilePtr& file, const std::string& text) {
  struct stat status {};
  REQUIRE(::fstat(file->file.get(), &status) == 0);
  REQUIRE(::pwrite(file->file.get(), text.data(), text.size(), status.st_size) == static_cast<ssize_t>(text.size()));
}

void set_modified(const JitFilePtr& file, std::int64_t second) {
  const timespec times[2] = {{second, 0}, {second, 0}};
  REQUIRE(::futimens(file->file.get(), times) == 0);
}

struct Fixture {
  ManualClock clock{{0}, {0}};
  CountingReader reader;
  JitSymbols symbols{reader, clock};

  std::string name(const JitFiles& files, std::uint64_t address) {
    const JitSymbols::View view = symbols.view(files);
    const auto found = view.find(address);
    return found ? std::string(found->name) : "(" + view.why_none + ")";
  }
};

TEST_CASE("a map is read once as long as it does not change") {
  Fixture f;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  CHECK(f.name(files, 0x10) == "one");
  f.clock.advance_ns(100 * kNsPerSecond);
  CHECK(f.name(files, 0x1f) == "one");
  CHECK(f.name(files, 0x20) == "(no entry of /tmp/perf-1.map covers this address)");
  CHECK(f.reader.reads == 1);
}

TEST_CASE("a map that has grown is read again, but not at every query") {
  Fixture f;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  CHECK(f.name(files, 0x10) == "one");
  append(files.files[0], "20 10 two\n");
  CHECK(f.name(files, 0x10) == "one");
  CHECK(f.reader.reads == 1);
  f.clock.advance_ns(kNsPerSecond);
  CHECK(f.name(files, 0x20) == "two");
  CHECK(f.reader.reads == 2);
}

TEST_CASE("a map that was rewritten with the same length is read again") {
  Fixture f;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  set_modified(files.files[0], 1);
  CHECK(f.name(files, 0x10) == "one");
  REQUIRE(::pwrite(files.files[0]->file.get(), "10 10 two\n", 10, 0) == 10);
  set_modified(files.files[0], 2);
  f.clock.advance_ns(kNsPerSecond);
  CHECK(f.name(files, 0x10) == "two");
}

TEST_CASE("a map that takes long to read and always grows is read for a tenth of the time at most") {
  Fixture f;
  f.reader.clock = &f.clock;
  f.reader.takes_ns = 2 * kNsPerSecond;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(f.name(files, 0x10));
    append(files.files[0], "20 10 two\n");
    f.clock.advance_ns(kNsPerSecond);
  }
  CHECK(f.reader.reads <= 7);
  CHECK(f.reader.reads >= 5);
  CHECK(f.name(files, 0x20) == "two");
}

TEST_CASE("of two files with a name for an address, the one that was written last counts") {
  Fixture f;
  const JitFilePtr older = file_of("10 10 older\n30 10 only\n", "/tmp/a"), newer = file_of("10 10 newer\n", "/tmp/b");
  set_modified(older, 100);
  set_modified(newer, 200);
  const JitFiles files{{older, newer}, ""};
  CHECK(f.name(files, 0x10) == "newer");
  CHECK(f.name(files, 0x30) == "only");
  CHECK(f.name(files, 0x50) == "(no entry of /tmp/a and /tmp/b covers this address)");
}

TEST_CASE("without a file the reason is the search's") {
  Fixture f;
  CHECK(f.name({{}, "start node with --perf-basic-prof"}, 0x10) == "(start node with --perf-basic-prof)");
}

TEST_CASE("a file that can't be read gives its reason, and is tried again after a while") {
  Fixture f;
  f.reader.throws = true;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  CHECK(f.name(files, 0x10) == "(cannot use /tmp/perf-1.map: worker died)");
  f.reader.throws = false;
  f.clock.advance_ns(2 * kNsPerSecond);
  CHECK(f.name(files, 0x10) == "(cannot use /tmp/perf-1.map: worker died)");
  CHECK(f.symbols.stats().failed_loads == 1);
  f.clock.advance_ns(9 * kNsPerSecond);
  CHECK(f.name(files, 0x10) == "one");
}

TEST_CASE("names stay when their file can't be read any more") {
  Fixture f;
  const JitFiles files{{file_of("10 10 one\n")}, ""};
  CHECK(f.name(files, 0x10) == "one");
  f.reader.throws = true;
  append(files.files[0], "20 10 two\n");
  f.clock.advance_ns(kNsPerSecond);
  CHECK(f.name(files, 0x10) == "one");
  CHECK(f.reader.reads == 2);
}

TEST_CASE("a path can't smuggle control characters into a reason") {
  Fixture f;
  const JitFiles files{{file_of("what\n", "/tmp/\x1b[2J\n/perf-1.map")}, ""};
  CHECK(f.name(files, 0x10).find_first_of("\x1b\n") == std::string::npos);
}

TEST_CASE("tables beyond the budget are dropped, the least recently used first, and read again when needed") {
  Fixture f;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1" + std::to_string(1000 + i) + "0 10 function_" + std::to_string(i) + "\n";
  JitSymbols small(f.reader, f.clock, {.table_budget_bytes = 60'000});
  const JitFiles a{{file_of(text)}, ""}, b{{file_of(text)}, ""}, c{{file_of(text)}, ""};
  for (const JitFiles* files : {&a, &b, &a, &c}) CHECK(small.view(*files).find(0x110000).has_value());
  CHECK(small.stats().table_bytes <= 60'000);
  CHECK(small.stats().evictions == 1);
  CHECK(f.reader.reads == 3);
  CHECK(small.view(a).find(0x110000).has_value());
  CHECK(f.reader.reads == 3);
  CHECK(small.view(b).find(0x110000).has_value());
  CHECK(f.reader.reads == 4);
}

TEST_CASE("tables of files without holders are dropped") {
  Fixture f;
  {
    const JitFiles files{{file_of("10 10 one\n")}, ""};
    CHECK(f.name(files, 0x10) == "one");
  }
  const JitFiles other{{file_of("10 10 two\n")}, ""};
  CHECK(f.name(other, 0x10) == "two");
  CHECK(f.symbols.stats().tables == 1);
}

}  // namespace
}  // namespace flamed::symbolizer
