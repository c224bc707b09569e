// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/jit/jit_dump.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbolizer/jit/jit_ranges.h"
#include "symbolizer/model/clean_name.h"

namespace flamed::symbolizer {
namespace {

#if defined(__aarch64__)
constexpr std::uint32_t kMachine = EM_AARCH64;
#else
constexpr std::uint32_t kMachine = EM_X86_64;
#endif

constexpr std::uint32_t kMagic = 0x4A695444;         ///< "JiTD"
constexpr std::uint32_t kMagicSwapped = 0x4454694A;  ///< written by a machine of the other byte order
constexpr std::uint32_t kVersion = 1;

struct FileHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t bytes;  ///< of this header, and so the offset of the first record
  std::uint32_t machine;
  std::uint32_t padding;
  std::uint32_t pid;
  std::uint64_t time;
  std::uint64_t flags;
};
static_assert(sizeof(FileHeader) == 40);

enum RecordId : std::uint32_t { kLoad = 0, kMove = 1, kClose = 3 };

struct RecordHeader {
  std::uint32_t id;
  std::uint32_t bytes;  ///< of the record with this header
  std::uint64_t time;
};
static_assert(sizeof(RecordHeader) == 16);

/// The name follows, up to a NUL, and then the code.
struct Load {
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t virtual_address;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t index;
};
static_assert(sizeof(Load) == 40);

struct Move {
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t virtual_address;
  std::uint64_t old_address;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t index;
};
static_assert(sizeof(Move) == 48);

constexpr std::uint32_t kMaxAllNameBytes = std::uint32_t{64} << 20;
constexpr std::size_t kMaxRecords = 16'000'000;

struct Event {
  std::uint64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t index = 0;
  std::optional<std::size_t> name{};  ///< in Log::names; of a Load
};

struct Log {
  std::vector<Event> events;
  std::deque<std::string> names;
  std::size_t name_bytes = 0;
};

/// The name up to its NUL, most of it in one read. Empty if the record has no NUL.
std::string read_name(const ElfInput& input, std::uint64_t offset, std::uint64_t end) {
  constexpr std::size_t kStep = 256;
  std::string name;
  while (offset < end && name.size() < kMaxNameBytes) {
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(kStep, end - offset));
    const std::size_t used = name.size();
    name.resize(used + step);
    if (!input.read(offset, name.data() + used, step)) return {};
    if (const std::size_t nul = name.find('\0', used); nul != std::string::npos) {
      name.resize(nul);
      name.shrink_to_fit();
      return name;
    }
    offset += step;
  }
  if (name.size() < kMaxNameBytes) return {};
  return name;
}

/// False for a record after which the rest of the log can't be trusted.
bool read_record(const ElfInput& input, const RecordHeader& header, std::uint64_t offset, Log& log) {
  const std::uint64_t body = offset + sizeof(header);
  const std::uint64_t end = offset + header.bytes;
  if (header.id == kLoad) {
    Load load{};
    if (header.bytes < sizeof(header) + sizeof(load) || !input.read(body, &load, sizeof(load))) return false;
    std::string name = read_name(input, body + sizeof(load), end);
    if (name.empty()) return true;
    log.name_bytes += name.size();
    if (log.name_bytes > kMaxAllNameBytes || log.events.size() >= JitRanges::kMaxRanges) return false;
    log.names.push_back(std::move(name));
    log.events.push_back({header.time, load.address, load.bytes, load.index, log.names.size() - 1});
  } else if (header.id == kMove) {
    Move move{};
    if (header.bytes < sizeof(header) + sizeof(move) || !input.read(body, &move, sizeof(move))) return false;
    if (log.events.size() >= JitRanges::kMaxRanges) return false;
    log.events.push_back({header.time, move.address, move.bytes, move.index});
  }
  return true;
}

}  // namespace

Result<SymbolTable> parse_jit_dump(const ElfInput& input) {
  FileHeader file{};
  if (!input.read(0, &file, sizeof(file))) return Error("not a jitdump: it is shorter than a header");
  if (file.magic == kMagicSwapped) return Error("a jitdump of the other byte order");
  if (file.magic != kMagic) return Error("not a jitdump: it begins otherwise");
  if (file.version != kVersion) {
    return Error("a jitdump of version " + std::to_string(file.version) + "; only version 1 is known");
  }
  if (file.machine != kMachine) {
    return Error("a jitdump of another machine (ELF number " + std::to_string(file.machine) + ")");
  }
  if (file.bytes < sizeof(file)) return Error("damaged: the jitdump's header says that it is too short");

  Log log;
  std::uint64_t offset = file.bytes;
  RecordHeader header{};
  for (std::size_t records = 0; records < kMaxRecords && input.read(offset, &header, sizeof(header)); ++records) {
    if (header.bytes < sizeof(header) || header.bytes > input.size() - offset || header.id == kClose) break;
    if (!read_record(input, header, offset, log)) break;
    offset += header.bytes;
  }
  // Each thread of a program writes its own records: they may be out of order.
  std::stable_sort(log.events.begin(), log.events.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });

  JitRanges ranges;
  std::unordered_map<std::uint64_t, std::size_t> name_of_index;
  for (const Event& event : log.events) {
    if (event.name) name_of_index[event.index] = *event.name;
    const auto name = name_of_index.find(event.index);
    // Moved code is gone from its old place, but earlier samples still refer to it.
    if (name != name_of_index.end()) ranges.add(event.address, event.bytes, log.names[name->second]);
  }
  return std::move(ranges).build(2 * kMaxAllNameBytes);
}

Result<SymbolTable> read_jit_dump(int fd) {
  const Result<ElfInput> input = ElfInput::from_fd(fd);
  if (!input) return Error(input.error());
  return parse_jit_dump(*input);
}

}  // namespace flamed::symbolizer
