// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/jit_dump.h"

#include <elf.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

#if defined(__aarch64__)
constexpr std::uint32_t kHere = EM_AARCH64;
constexpr std::uint32_t kElsewhere = EM_X86_64;
#else
constexpr std::uint32_t kHere = EM_X86_64;
constexpr std::uint32_t kElsewhere = EM_AARCH64;
#endif

/// Writes a jitdump by the specification.
class Dump {
 public:
  explicit Dump(std::uint32_t magic = 0x4A695444, std::uint32_t version = 1, std::uint32_t machine = kHere,
                std::uint32_t header_bytes = 40) {
    u32(magic).u32(version).u32(header_bytes).u32(machine).u32(0).u32(7).u64(1).u64(0);
    bytes_.resize(std::max<std::size_t>(bytes_.size(), header_bytes));
  }
  Dump& load(std::uint64_t time, std::uint64_t address, std::uint64_t size, std::uint64_t index,
             std::string_view name) {
    const std::string code(static_cast<std::size_t>(size), '\xcc');
    record(0, static_cast<std::uint32_t>(40 + name.size() + 1 + code.size()), time);
    u32(7).u32(7).u64(address).u64(address).u64(size).u64(index);
    bytes_ += name;
    bytes_ += '\0';
    bytes_ += code;
    return *this;
  }
  Dump& move(std::uint64_t time, std::uint64_t from, std::uint64_t to, std::uint64_t size, std::uint64_t index) {
    record(1, 48, time);
    return u32(7).u32(7).u64(to).u64(from).u64(to).u64(size).u64(index);
  }
  Dump& other(std::uint32_t id, std::uint32_t body_bytes) {
    record(id, body_bytes, 5);
    bytes_.append(body_bytes, 'D');
    return *this;
  }
  Dump& record(std::uint32_t id, std::uint32_t body_bytes, std::uint64_t time) {
    return u32(id).u32(16 + body_bytes).u64(time);
  }
  Dump& u32(std::uint32_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Dump& u64(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  void cut(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }
  [[nodiscard]] Result<SymbolTable> parse() const {
    return parse_jit_dump(ElfInput::from_memory(std::as_bytes(std::span(bytes_))));
  }

 private:
  std::string bytes_;
};

std::string at(const Result<SymbolTable>& table, std::uint64_t address) {
  REQUIRE(table.ok());
  const auto found = table->find(address);
  return found ? std::string(found->name) : "-";
}

TEST_CASE("a jitdump names loaded code by its addresses") {
  const auto table = Dump().load(1, 0x1000, 0x20, 0, "first").load(2, 0x1040, 0x10, 1, "second; one").parse();
  CHECK(at(table, 0xfff) == "-");
  CHECK(at(table, 0x1000) == "first");
  CHECK(at(table, 0x101f) == "first");
  CHECK(at(table, 0x1020) == "-");
  CHECK(at(table, 0x1048) == "second; one");
}

TEST_CASE("debug and unwinding information and unknown records are skipped") {
  const auto table = Dump().other(2, 100).load(1, 0x10, 4, 0, "a").other(4, 24).other(99, 3).load(2, 0x20, 4, 1, "b");
  CHECK(at(table.parse(), 0x10) == "a");
  CHECK(at(table.parse(), 0x20) == "b");
}

TEST_CASE("code that was moved is found at both places") {
  const auto table = Dump().load(1, 0x1000, 0x20, 3, "moved").move(2, 0x1000, 0x5000, 0x20, 3).parse();
  CHECK(at(table, 0x1010) == "moved");
  CHECK(at(table, 0x5010) == "moved");
}

TEST_CASE("a move of code that was never loaded is ignored") {
  CHECK(Dump().move(2, 0x1000, 0x5000, 0x20, 3).parse()->empty());
}

TEST_CASE("the record with the latest time counts, not the last one in the file") {
  const auto table = Dump()
                         .load(30, 0x1000, 0x20, 2, "newest")
                         .move(20, 0x9000, 0x1000, 0x20, 1)
                         .load(10, 0x9000, 0x20, 1, "older")
                         .parse();
  CHECK(at(table, 0x1000) == "newest");
  CHECK(at(table, 0x9000) == "older");
}

TEST_CASE("the log ends at its close record, and at a truncated or damaged record") {
  Dump closed;
  closed.load(1, 0x10, 4, 0, "a").other(3, 0).load(2, 0x20, 4, 1, "b");
  CHECK(at(closed.parse(), 0x20) == "-");

  Dump cut;
  cut.load(1, 0x10, 4, 0, "a").load(2, 0x20, 4, 1, "b");
  cut.cut(1);
  CHECK(at(cut.parse(), 0x10) == "a");
  CHECK(at(cut.parse(), 0x20) == "-");

  Dump damaged;
  damaged.load(1, 0x10, 4, 0, "a").u32(0).u32(15).u64(2).load(3, 0x20, 4, 1, "b");
  CHECK(at(damaged.parse(), 0x10) == "a");
  CHECK(at(damaged.parse(), 0x20) == "-");

  Dump huge;
  huge.load(1, 0x10, 4, 0, "a").u32(0).u32(0xffffffff).u64(2);
  CHECK(at(huge.parse(), 0x10) == "a");

  Dump short_load;
  short_load.load(1, 0x10, 4, 0, "a").other(0, 39);
  CHECK(at(short_load.parse(), 0x10) == "a");
}

TEST_CASE("names without an end, empty or of any length are read safely") {
  Dump dump;
  dump.record(0, 40 + 5, 1).u32(7).u32(7).u64(0x10).u64(0x10).u64(4).u64(0).u32(0x41414141).u32(0x41);
  dump.cut(3);
  dump.load(2, 0x20, 4, 1, "").load(3, 0x30, 4, 2, std::string(100'000, 'n')).load(4, 0x40, 4, 3, "good");
  const auto table = dump.parse();
  CHECK(at(table, 0x10) == "-");
  CHECK(at(table, 0x20) == "-");
  CHECK(at(table, 0x30).size() == 4096);
  CHECK(at(table, 0x40) == "good");
}

TEST_CASE("ranges of a jitdump that wrap around are left out") {
  const auto table = Dump().load(1, UINT64_MAX - 2, 4, 0, "wraps").load(2, 0x40, 4, 3, "good").parse();
  CHECK(at(table, UINT64_MAX - 1) == "-");
  CHECK(at(table, 0x40) == "good");
}

TEST_CASE("a header longer than the known one is skipped whole") {
  CHECK(at(Dump(0x4A695444, 1, kHere, 64).load(1, 0x10, 4, 0, "a").parse(), 0x10) == "a");
}

TEST_CASE("a jitdump of another byte order, machine or version is refused with a reason") {
  CHECK(Dump(0x4454694A).parse().error().message() == "a jitdump of the other byte order");
  CHECK(Dump(0x12345678).parse().error().message() == "not a jitdump: it begins otherwise");
  CHECK(Dump(0x4A695444, 2).parse().error().message() == "a jitdump of version 2; only version 1 is known");
  CHECK(Dump(0x4A695444, 1, kElsewhere).parse().error().message() ==
        "a jitdump of another machine (ELF number " + std::to_string(kElsewhere) + ")");
  CHECK_FALSE(Dump(0x4A695444, 1, kHere, 39).parse().ok());
  CHECK_FALSE(parse_jit_dump(ElfInput::from_memory({})).ok());
}

}  // namespace
}  // namespace flamed::symbolizer
