// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/kernel_symbols.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kSnippet =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000100 t __pfx_do_one_thing\n"
    "ffffffff81000110 t do_one_thing\n"
    "ffffffff81000200 W weak_thing\n"
    "ffffffff81000200 t local_alias\n"
    "ffffffff81000300 T last_of_text\n"
    "ffffffff82000000 D some_data\n"
    "ffffffff82000100 r some_rodata\n"
    "ffffffffc0201000 t nft_do_chain\t[nf_tables]\n"
    "ffffffffc0201100 t nft_trans\t[nf_tables]\n"
    "ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]\n"
    "ffffffffc0300800 t bpf_prog_0123456789abcdef\n";

std::string at(const KallsymsTable& table, std::uint64_t address) {
  const auto found = table.find(address);
  return found ? std::string(found->module) + " " + std::string(found->name) : "-";
}

TEST_CASE("kernel functions reach to the next symbol") {
  const KallsymsTable table = parse_kallsyms(kSnippet).value();
  CHECK(at(table, 0xffffffff81000110) == "[kernel] do_one_thing");
  CHECK(at(table, 0xffffffff810001ff) == "[kernel] do_one_thing");
  CHECK(at(table, 0xffffffff81000200) == "[kernel] weak_thing");
  CHECK(at(table, 0xffffffff80ffffff) == "-");
  CHECK(at(table, 0x1000) == "-");
}

TEST_CASE("module functions and BPF programs carry their module") {
  const KallsymsTable table = parse_kallsyms(kSnippet).value();
  CHECK(at(table, 0xffffffffc0201010) == "[nf_tables] nft_do_chain");
  CHECK(at(table, 0xffffffffc0300010) == "[bpf] bpf_prog_6deef7357e7b4530_sd_fw_egress");
  CHECK(at(table, 0xffffffffc0300810) == "[bpf] bpf_prog_0123456789abcdef");
}

TEST_CASE("a kernel function whose name resembles a BPF program's belongs to the kernel") {
  const KallsymsTable table = parse_kallsyms("ffffffff81000000 t bpf_prog_realloc\n").value();
  CHECK(at(table, 0xffffffff81000000) == "[kernel] bpf_prog_realloc");
}

TEST_CASE("the padding before a function belongs to it") {
  const KallsymsTable table = parse_kallsyms(kSnippet).value();
  CHECK(at(table, 0xffffffff81000105) == "[kernel] do_one_thing");
}

TEST_CASE("data has no name, and ends the function before it") {
  const KallsymsTable table = parse_kallsyms(kSnippet).value();
  CHECK(at(table, 0xffffffff82000000) == "-");
  CHECK(at(table, 0xffffffff82000100) == "-");
}

TEST_CASE("the last function of a module doesn't reach over the gap to the next") {
  const KallsymsTable table = parse_kallsyms(kSnippet).value();
  CHECK(at(table, 0xffffffffc0201150) == "[nf_tables] nft_trans");
  CHECK(at(table, 0xffffffffc0280000) == "-");
  CHECK(at(table, 0xffffffffc0400000) == "-");
}

TEST_CASE("a BPF program has the kernel's length, and ends before the gap of an unloaded one") {
  const KallsymsTable table =
      parse_kallsyms(kSnippet, {{0xffffffffc0300800, 16'000}, {0xffffffffc0300000, 0x300}, {0xffffffff81000110, 1}})
          .value();
  CHECK(at(table, 0xffffffffc03002ff) == "[bpf] bpf_prog_6deef7357e7b4530_sd_fw_egress");
  CHECK(at(table, 0xffffffffc0300300) == "-");
  CHECK(at(table, 0xffffffffc0300800 + 15'999) == "[bpf] bpf_prog_0123456789abcdef");
  CHECK(at(table, 0xffffffffc0300800 + 16'000) == "-");
  CHECK(at(table, 0xffffffff810001ff) == "[kernel] do_one_thing");
}

TEST_CASE("a BPF program never reaches into the next symbol, whatever length the kernel reports") {
  const KallsymsTable table = parse_kallsyms(
                                  "ffffffffc0300000 t bpf_prog_0123456789abcdef_a\t[bpf]\nffffffffc0300100 t "
                                  "bpf_prog_0123456789abcdef_b\t[bpf]\n",
                                  {{0xffffffffc0300000, 0x4000}, {0xffffffffc0300100, ~std::uint64_t{0}}})
                                  .value();
  CHECK(at(table, 0xffffffffc03000ff) == "[bpf] bpf_prog_0123456789abcdef_a");
  CHECK(at(table, 0xffffffffc0300100) == "[bpf] bpf_prog_0123456789abcdef_b");
}

TEST_CASE("symbols of the kernel itself are found by name, functions or not") {
  CHECK(find_kallsyms(kSnippet, {"some_data", "nft_trans", "weak_thing", "absent"}) ==
        std::vector<std::uint64_t>{0xffffffff82000000, 0, 0xffffffff81000200, 0});
}

TEST_CASE("symbols out of order are sorted") {
  const KallsymsTable table = parse_kallsyms("ffffffff81000020 t b\nffffffff81000010 t a\n").value();
  CHECK(at(table, 0xffffffff8100001f) == "[kernel] a");
  CHECK(at(table, 0xffffffff81000020) == "[kernel] b");
}

TEST_CASE("addresses that are all zero name the capability and the sysctl") {
  const Result<KallsymsTable> hidden = parse_kallsyms("0000000000000000 T _text\n0000000000000000 t f\t[m]\n");
  REQUIRE_FALSE(hidden.ok());
  CHECK(hidden.error().message().find("CAP_SYSLOG") != std::string::npos);
  CHECK(hidden.error().message().find("kernel.kptr_restrict") != std::string::npos);
}

TEST_CASE("text that is no kallsyms is an error") {
  CHECK_FALSE(parse_kallsyms("").ok());
  CHECK_FALSE(parse_kallsyms("\n\nhello\nffff\nffffffff81000000 T\nzz T f\n").ok());
  CHECK_FALSE(parse_kallsyms("ffffffff81000000 D only_data\n").ok());
}

TEST_CASE("lines of another form are skipped") {
  const KallsymsTable table = parse_kallsyms("garbage\nffffffff81000000 T f\n\n12").value();
  CHECK(table.size() == 1);
}

/// A kallsyms that can change.
class FakeKallsyms {
 public:
  explicit FakeKallsyms(const std::string& text) {
    path_ = "/tmp/flamed-kallsyms-test-XXXXXX";
    ::close(::mkstemp(path_.data()));
    write(text);
  }
  ~FakeKallsyms() { ::unlink(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::uint64_t kOld = 0xffffffff81000000;
constexpr std::uint64_t kNew = 0xffffffffc0000000;

TEST_CASE("whether the kernel shows its addresses is found without reading all of them") {
  const ManualClock clock{MonotonicTime{0}, WallTime{0}};
  FakeKallsyms file("0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n" +
                    std::string(kSnippet));
  const KernelSymbols symbols(clock, {.path = file.path()});
  CHECK(symbols.check().ok());
  file.write("0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n");
  REQUIRE_FALSE(symbols.check().ok());
  CHECK(symbols.check().error().message().find("kernel.kptr_restrict") != std::string::npos);
  file.write("");
  CHECK_FALSE(symbols.check().ok());
  CHECK_FALSE(KernelSymbols(clock, {.path = "/nonexistent/kallsyms"}).check().ok());
}

TEST_CASE("a module loaded later is found, but the file is read again only at a limited rate") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\n");
  KernelSymbols symbols(clock, {.path = file.path()});
  REQUIRE(symbols.find(kOld).ok());
  CHECK(symbols.stats().loads == 1);

  file.write("ffffffff81000000 T old\nffffffffc0000000 t fresh\t[mod]\n");
  CHECK_FALSE(symbols.find(kNew).ok());
  CHECK_FALSE(symbols.find(kNew).ok());
  CHECK(symbols.stats().loads == 1);

  clock.advance_ns(31 * kNsPerSecond);
  const Result<KernelSymbols::Name> found = symbols.find(kNew + 5);
  REQUIRE(found.ok());
  CHECK(found->name == "fresh");
  CHECK(found->module == "[mod]");
  CHECK(found->offset == 5);
  CHECK(symbols.stats().loads == 2);
}

TEST_CASE("a BPF program that took the place of another one has its own name") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\nffffffffc0000000 t bpf_prog_0123456789abcdef_before\t[bpf]\n");
  std::uint32_t program = 7;
  KernelSymbols symbols(clock, {.path = file.path(), .bpf_functions = [&] {
                                  return std::vector{KernelFunction{kNew, 64, program}};
                                }});
  REQUIRE(symbols.load().ok());
  clock.advance_ns(31 * kNsPerSecond);
  CHECK(symbols.find(kNew)->name == "bpf_prog_0123456789abcdef_before");
  CHECK(symbols.stats().loads == 1);

  file.write("ffffffff81000000 T old\nffffffffc0000000 t bpf_prog_0123456789abcdef_after\t[bpf]\n");
  program = 8;
  clock.advance_ns(31 * kNsPerSecond);
  CHECK(symbols.find(kOld).ok());
  CHECK(symbols.stats().loads == 1);
  CHECK(symbols.find(kNew)->name == "bpf_prog_0123456789abcdef_after");
  CHECK(symbols.stats().loads == 2);
}

TEST_CASE("an address that can't be the kernel's does not make the file be read again") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\n");
  KernelSymbols symbols(clock, {.path = file.path()});
  REQUIRE(symbols.load().ok());
  clock.advance_ns(31 * kNsPerSecond);
  CHECK_FALSE(symbols.find(0x1234).ok());
  CHECK(symbols.stats().loads == 1);
}

TEST_CASE("an old table is read again even if it has an answer") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\n");
  KernelSymbols symbols(clock, {.path = file.path()});
  REQUIRE(symbols.find(kOld)->name == "old");
  file.write("ffffffff81000000 T replaced\n");
  CHECK(symbols.find(kOld)->name == "old");
  clock.advance_ns(11 * kNsPerMinute);
  CHECK(symbols.find(kOld)->name == "replaced");
}

TEST_CASE("a file that was passed open is read from its beginning each time, and not by its path") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\n");
  KernelSymbols symbols(clock, {.path = "/nonexistent/kallsyms", .file = Fd(::open(file.path().c_str(), O_RDONLY))});
  CHECK(symbols.check().ok());
  REQUIRE(symbols.find(kOld).ok());
  file.write("ffffffff81000000 T replaced\n");
  clock.advance_ns(11 * kNsPerMinute);
  CHECK(symbols.check().ok());
  CHECK(symbols.find(kOld)->name == "replaced");
}

TEST_CASE("when a later read fails, the earlier names stay") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T old\n");
  KernelSymbols symbols(clock, {.path = file.path()});
  REQUIRE(symbols.find(kOld).ok());
  file.write("0000000000000000 T old\n");
  clock.advance_ns(11 * kNsPerMinute);
  CHECK(symbols.find(kOld).ok());
  const Result<KernelSymbols::Name> unknown = symbols.find(kNew);
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message().find("CAP_SYSLOG") != std::string::npos);
  CHECK(symbols.stats().failed_loads == 1);
}

TEST_CASE("a missing file is the reason for every unknown address") {
  ManualClock clock({0}, {0});
  KernelSymbols symbols(clock, {.path = "/nonexistent/kallsyms"});
  CHECK_FALSE(symbols.load().ok());
  const Result<KernelSymbols::Name> name = symbols.find(kOld);
  REQUIRE_FALSE(name.ok());
  CHECK(name.error().message().find("/nonexistent/kallsyms") != std::string::npos);
}

TEST_CASE("control characters in a symbol's name don't come out") {
  ManualClock clock({0}, {0});
  FakeKallsyms file("ffffffff81000000 T a\x1b[0m\n");
  KernelSymbols symbols(clock, {.path = file.path()});
  CHECK(symbols.find(kOld)->name.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
