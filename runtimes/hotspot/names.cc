// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "base/byte_reader.h"
#include "runtimes/hotspot/interpreter.h"
#include "runtimes/hotspot/unsigned5.h"
#include "runtimes/linked_frames.h"
#include "runtimes/utf8.h"

namespace flamed::runtimes {
namespace {

constexpr std::size_t kMostObjectBytes = 512;
/// More than any method compiles to.
constexpr std::uint64_t kMostBlobBytes = std::uint64_t{64} << 20;
/// JVM_CONSTANT_Utf8
constexpr std::uint8_t kTextTag = 1;
/// A table of lines has at least one byte for an entry, and bytecode is at most 65,535 bytes.
constexpr std::size_t kMostLineTableBytes = std::size_t{64} << 10;

/// UTF-8 of what a class file has: U+0000 as two bytes, characters beyond the first 65,536 as two surrogates of three
/// bytes each. Empty: it is something else.
std::optional<std::string> from_class_file(std::span<const std::byte> bytes) {
  std::string text;
  std::uint32_t high = 0;  // a surrogate that waits for its other half
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<std::uint32_t>(bytes[i]);
    const std::size_t length = first < 0x80 ? 1 : (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 0;
    if (length == 0 || length > bytes.size() - i) return std::nullopt;
    std::uint32_t point = length == 1 ? first : length == 2 ? first & 0x1f : first & 0x0f;
    for (std::size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<std::uint32_t>(bytes[i + k]);
      if ((byte & 0xc0) != 0x80) return std::nullopt;
      point = point << 6 | (byte & 0x3f);
    }
    i += length;
    const bool is_low = point >= 0xdc00 && point < 0xe000;
    if ((high != 0) != is_low) return std::nullopt;
    if (point >= 0xd800 && point < 0xdc00) {
      high = point;
      continue;
    }
    if (is_low) point = 0x10000 + ((std::exchange(high, 0) - 0xd800) << 10) + (point - 0xdc00);
    append_utf8(text, point);
  }
  if (high != 0) return std::nullopt;
  return text;
}

/// How much of a text that was cut are whole characters; two surrogates are one.
std::size_t whole_characters(std::span<const std::byte> bytes) {
  const auto is_within = [](std::byte byte) { return (byte & std::byte{0xc0}) == std::byte{0x80}; };
  std::size_t size = bytes.size();
  while (size != 0 && is_within(bytes[size - 1])) --size;
  if (size != 0) --size;
  const bool after_high =
      size >= 3 && bytes[size - 3] == std::byte{0xed} && (bytes[size - 2] & std::byte{0xf0}) == std::byte{0xa0};
  return after_high ? size - 3 : size;
}

/// What has to be read of a CodeBlob or nmethod to know the members that are used here.
std::size_t bytes_of_blob(const HotSpotLayout& layout) {
  const HotSpotBlobs& blobs = layout.blobs;
  const HotSpotNmethods& nmethods = layout.nmethods;
  std::size_t bytes = 0;
  for (const HotSpotPlace* const place :
       {&blobs.name, &blobs.bytes, &blobs.code_begin, &blobs.code_offset, &blobs.data_offset, &nmethods.method,
        &nmethods.compile_id, &nmethods.immutable_data, &nmethods.immutable_data_bytes, &nmethods.scopes_pcs_offset,
        &nmethods.scopes_data, &nmethods.scopes_data_offset, &nmethods.dependencies_offset, &nmethods.metadata_offset,
        &nmethods.mutable_data, &nmethods.mutable_data_bytes, &nmethods.relocation_bytes}) {
    if (place->is_there()) bytes = std::max<std::size_t>(bytes, place->offset + place->bytes);
  }
  return std::min(bytes, kMostObjectBytes);
}

/// What is looked at behind a safepoint poll: the poll, a comparison, and a jump.
constexpr std::size_t kLoopEndBytes = 24;

/// If there is a safepoint poll and then a jump backwards, the end of a loop: its bytes. Else 0.
std::size_t loop_end_at(std::span<const std::byte> code) {
  const auto byte = [&](std::size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  constexpr unsigned kExtended = 0x41;
  constexpr unsigned kTest = 0x85;
  // test %eax,(register), or until JDK 10 %eax,address.
  const std::size_t poll = byte(0) == kExtended ? 1 : 0;
  if (byte(poll) != kTest || byte(poll + 1) > 7) return 0;
  constexpr unsigned kByAddress = 5;
  const std::size_t compare = poll + 2 + (poll == 0 && byte(1) == kByAddress ? 4 : 0);
  constexpr std::size_t kMostCompareBytes = 8;
  for (std::size_t at = compare; at <= compare + kMostCompareBytes; ++at) {
    const bool is_short = (byte(at) & 0xf0) == 0x70;
    const bool is_long = byte(at) == 0x0f && (byte(at + 1) & 0xf0) == 0x80;
    const std::size_t end = at + (is_short ? 2 : 6);
    if ((is_short || is_long) && (byte(end - 1) & 0x80) != 0) return end;
  }
  return 0;
}

/// "java/util/HashMap$Node" -> "java.util.HashMap$Node". A hidden class has an address behind its name, which is
/// another one in each process: "Main$$Lambda$14+0x00007f...".
std::string shown_class(std::string name) {
  if (const std::size_t address = name.find("+0x"); address != std::string::npos && address != 0) name.resize(address);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace

/// A part of the memory as it was copied.
class HotSpotNames::Object {
 public:
  Object(std::uint64_t address, std::size_t bytes) : address_(address), size_(std::min(bytes, kMostObjectBytes)) {}

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::span<std::byte> bytes() { return std::span(bytes_).first(size_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }
  [[nodiscard]] std::uint64_t operator[](const HotSpotPlace& place) const { return place.in(bytes()); }
  /// The address in one member, plus the number in another one. 0: it has no such address.
  [[nodiscard]] std::uint64_t after(std::uint64_t base, const HotSpotPlace& offset) const {
    const std::int64_t bytes = offset.signed_in(this->bytes());
    return base == 0 || !offset.is_there() || bytes < 0 ? 0 : base + static_cast<std::uint64_t>(bytes);
  }

 private:
  std::uint64_t address_;
  std::size_t size_;
  std::array<std::byte, kMostObjectBytes> bytes_{};
};

std::vector<LineRun> read_bytecode_lines(std::span<const std::byte> table, std::uint32_t exclude) {
  // An entry is a byte with the differences to the one before, five bits of bytecode and three of line; 0xff: they
  // follow as two signed numbers; 0: the end (compressedStream.hpp).
  constexpr std::uint8_t kEnd = 0;
  constexpr std::uint8_t kNumbersFollow = 0xff;
  constexpr std::uint32_t kMost = 0xffff;  // of both, in a class file
  std::vector<LineRun> lines;
  ByteReader bytes(table);
  LineRun entry;
  while (lines.size() < kMostLineRuns) {
    const std::uint8_t head = bytes.u8();
    if (head == kEnd) break;
    if (head == kNumbersFollow) {
      entry.first += static_cast<std::uint32_t>(read_signed5(bytes, exclude));
      entry.line += static_cast<std::uint32_t>(read_signed5(bytes, exclude));
    } else {
      entry.first += head >> 3;
      entry.line += head & 7;
    }
    if (!bytes.ok() || entry.first > kMost || entry.line > kMost) break;
    lines.push_back(entry);
  }
  // Compilers write entries in any order, and several for an instruction: the last one holds.
  std::stable_sort(lines.begin(), lines.end(), [](const LineRun& a, const LineRun& b) { return a.first < b.first; });
  std::vector<LineRun> runs;
  for (const LineRun& each : lines) {
    if (!runs.empty() && runs.back().first == each.first) runs.pop_back();
    if (runs.empty() || runs.back().line != each.line) runs.push_back(each);
  }
  return runs;
}

HotSpotNames::HotSpotNames(RemoteMemory& memory, RemoteMemory& present, const HotSpotLayout& layout)
    : memory_(memory),
      present_(present),
      layout_(layout),
      blob_bytes_(bytes_of_blob(layout)),
      exclude_(layout.version >= 20 ? 1 : 0),
      slots_(interpreter_slots(layout)) {}

std::optional<HotSpotNames::Object> HotSpotNames::object(RemoteMemory& memory, std::uint64_t address,
                                                         std::size_t bytes) {
  Object copy(address, bytes);
  if (address == 0 || !memory.read(address, copy.bytes())) return std::nullopt;
  return copy;
}

std::optional<HotSpotNames::Object> HotSpotNames::object(std::uint64_t address, std::size_t bytes) {
  return object(memory_, address, bytes);
}

std::uint64_t HotSpotNames::member(std::uint64_t address, const HotSpotPlace& place) {
  std::uint64_t value = 0;
  if (address == 0 || !place.is_there() || place.bytes > sizeof(value)) return 0;
  const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(place.bytes);
  return memory_.read(address + place.offset, bytes) ? value : 0;
}

Result<HotSpotNamedCode> HotSpotNames::code(std::uint64_t address) {
  const HotSpotBlobs& places = layout_.blobs;
  const std::optional<Object> blob = object(address, blob_bytes_);
  if (!blob) return Error("no code of HotSpot");
  HotSpotNamedCode code;
  code.address = address;
  code.bytes = (*blob)[places.bytes];
  code.code = places.code_begin.is_there() ? (*blob)[places.code_begin] : blob->after(address, places.code_offset);
  const bool is_inside = code.code > address && code.code - address <= code.bytes;
  if (code.bytes > kMostBlobBytes || !is_inside) return Error("no code of HotSpot");
  if (std::optional<std::string> name = blob_name((*blob)[places.name])) code.name = *std::move(name);
  if (code.name.empty()) return Error("code of HotSpot without a name");
  if (code.name == "Interpreter") code.kind = HotSpotCodeKind::kInterpreter;
  if (code.name == "nmethod" || code.name == "native nmethod") {
    code.kind = code.name == "nmethod" ? HotSpotCodeKind::kCompiled : HotSpotCodeKind::kNative;
    code.compile_id = static_cast<std::uint32_t>((*blob)[layout_.nmethods.compile_id]);
    code.method = (*blob)[layout_.nmethods.method];
  }
  return code;
}

bool HotSpotNames::is_unchanged(const HotSpotNamedCode& code) {
  const std::optional<Object> blob = object(present_, code.address, blob_bytes_);
  if (!blob || (*blob)[layout_.blobs.bytes] != code.bytes) return false;
  return code.method == 0 ||
         ((*blob)[layout_.nmethods.compile_id] == code.compile_id && (*blob)[layout_.nmethods.method] == code.method);
}

Result<std::vector<HotSpotCall>> HotSpotNames::calls(const HotSpotNamedCode& code, std::uint64_t pc) {
  const std::optional<Object> blob = object(code.address, blob_bytes_);
  if (!blob) return Error("no compiled method");
  if (pc < code.code || pc - code.code > code.bytes) return Error("no place in the compiled method");
  const Tables tables = tables_of(*blob);
  const Result<std::int32_t> scope = scope_at(tables.descriptors, code, static_cast<std::int64_t>(pc - code.code));
  if (!scope) return scope.error();
  if (*scope == 0) return std::vector<HotSpotCall>{{code.method, HotSpotCall::kNotKnown}};
  Result<std::vector<HotSpotCall>> calls = calls_of(tables, *scope);
  if (calls && calls->back().method != code.method) return Error("a compiled method with damaged descriptions");
  return calls;
}

HotSpotNames::Tables HotSpotNames::tables_of(const Object& nmethod) const {
  const HotSpotNmethods& places = layout_.nmethods;
  const bool is_apart = places.immutable_data.is_there();
  const std::uint64_t start = nmethod.address();
  const std::uint64_t base = is_apart ? nmethod[places.immutable_data] : start;
  Tables tables;
  tables.descriptors.begin = nmethod.after(base, places.scopes_pcs_offset);
  tables.scopes.begin =
      places.scopes_data.is_there() ? nmethod[places.scopes_data] : nmethod.after(base, places.scopes_data_offset);
  if (is_apart) {
    tables.descriptors.end = tables.scopes.begin;
    tables.scopes.end = nmethod.after(base, places.immutable_data_bytes);
  } else {
    tables.descriptors.end = nmethod.after(base, places.dependencies_offset);
    tables.scopes.end = tables.descriptors.begin;
  }
  if (const std::uint64_t data = nmethod[places.mutable_data]; places.mutable_data.is_there()) {
    tables.metadata = {nmethod.after(data, places.relocation_bytes), nmethod.after(data, places.mutable_data_bytes)};
  } else if (is_apart) {
    const std::uint64_t data_begin = nmethod.after(start, layout_.blobs.data_offset);
    tables.metadata = {nmethod.after(data_begin, places.metadata_offset), start + nmethod[layout_.blobs.bytes]};
  } else {
    tables.metadata = {nmethod.after(start, places.metadata_offset), tables.scopes.begin};
  }
  for (Range* const range : {&tables.descriptors, &tables.scopes, &tables.metadata}) {
    if (range->begin == 0 || range->end < range->begin || range->end - range->begin > kMostBlobBytes) *range = {};
  }
  return tables;
}

Result<std::int32_t> HotSpotNames::scope_at(const Range& descriptors, const HotSpotNamedCode& code,
                                            std::int64_t offset) {
  const std::uint32_t bytes = layout_.nmethods.pc_desc_bytes;
  if (bytes == 0) return Error("HotSpot does not say how it describes places");
  // They ascend. The first and the last one are the ends of the list and describe no place.
  const std::uint64_t count = (descriptors.end - descriptors.begin) / bytes;
  if (count < 3) return 0;
  std::uint64_t first = 1;
  std::uint64_t last = count - 1;
  std::optional<Object> found;
  std::optional<Object> before;
  while (first < last) {
    const std::uint64_t middle = (first + last) / 2;
    const std::optional<Object> descriptor = object(descriptors.begin + middle * bytes, bytes);
    if (!descriptor) return Error("a compiled method without descriptions");
    if (layout_.nmethods.pc_desc_pc.signed_in(descriptor->bytes()) < offset) {
      first = middle + 1;
      before = descriptor;
    } else {
      last = middle;
      found = descriptor;
    }
  }
  // Compilers put the poll of a loop before the last comparison: what follows the loop is another place.
  if (before && offset - layout_.nmethods.pc_desc_pc.signed_in(before->bytes()) < std::int64_t{kLoopEndBytes}) {
    const std::int64_t at = layout_.nmethods.pc_desc_pc.signed_in(before->bytes());
    std::array<std::byte, kLoopEndBytes> poll{};
    if (memory_.read(code.code + static_cast<std::uint64_t>(at), poll) &&
        offset - at < static_cast<std::int64_t>(loop_end_at(poll))) {
      found = before;
    }
  }
  if (!found) return 0;
  return static_cast<std::int32_t>(layout_.nmethods.pc_desc_scope.signed_in(found->bytes()));
}

Result<std::vector<HotSpotCall>> HotSpotNames::calls_of(const Tables& tables, std::int32_t scope) {
  constexpr std::uint64_t kThreeNumbers = 15;
  const std::uint64_t scopes_bytes = tables.scopes.end - tables.scopes.begin;
  const std::uint64_t methods = (tables.metadata.end - tables.metadata.begin) / sizeof(std::uint64_t);
  std::vector<HotSpotCall> calls;
  // What has inlined a method is described before it. 0: nothing has.
  for (auto before = static_cast<std::int64_t>(scopes_bytes); scope != 0;) {
    if (scope < 0 || scope >= before || calls.size() == kMostInlinedCalls) {
      return Error("a compiled method with damaged descriptions");
    }
    const std::uint64_t at = tables.scopes.begin + static_cast<std::uint64_t>(scope);
    const std::optional<Object> bytes = object(at, std::min(kThreeNumbers, tables.scopes.end - at));
    if (!bytes) return Error("a compiled method without descriptions");
    ByteReader reader(bytes->bytes());
    before = std::exchange(scope, static_cast<std::int32_t>(read_unsigned5(reader, exclude_)));
    const std::uint32_t number = read_unsigned5(reader, exclude_);
    // 0 is InvocationEntryBci, -1.
    const auto bytecode = static_cast<std::int32_t>(read_unsigned5(reader, exclude_)) - 1;
    if (!reader.ok() || number == 0 || number > methods) return Error("a compiled method with damaged descriptions");
    const auto method =
        read_number<std::uint64_t>(memory_, tables.metadata.begin + (number - 1) * sizeof(std::uint64_t));
    if (!method || *method == 0) return Error("a compiled method without its methods");
    calls.push_back({*method, bytecode});
  }
  return calls;
}

std::optional<std::string> HotSpotNames::blob_name(std::uint64_t address) {
  constexpr std::size_t kMostBytes = 64;
  std::string name;
  // One at a time: it may lie at the end of what can be read.
  for (std::size_t i = 0; address != 0 && i < kMostBytes; ++i) {
    const auto next = read_number<char>(memory_, address + i);
    if (!next) return std::nullopt;
    if (*next == '\0') return name;
    if (*next < ' ' || *next > '~') return std::nullopt;
    name += *next;
  }
  return std::nullopt;
}

std::optional<std::string> HotSpotNames::text(std::uint64_t symbol) {
  const std::uint64_t length = member(symbol, layout_.methods.symbol_length);
  if (length == 0) return std::nullopt;
  std::vector<std::byte> bytes(std::min<std::uint64_t>(length, kMostTextBytes));
  if (!memory_.read(symbol + layout_.methods.symbol_text.offset, bytes)) return std::nullopt;
  if (length > bytes.size()) bytes.resize(whole_characters(bytes));
  return from_class_file(bytes);
}

std::optional<std::string> HotSpotNames::pool_text(const Object& pool, std::uint64_t index) {
  const HotSpotMethods& places = layout_.methods;
  const std::uint64_t tags = pool[places.pool_tags];
  if (index == 0 || index >= pool[places.pool_length] || tags == 0) return std::nullopt;
  if (read_number<std::uint8_t>(memory_, tags + places.array_of_bytes.offset + index) != kTextTag) return std::nullopt;
  const auto symbol =
      read_number<std::uint64_t>(memory_, pool.address() + places.constant_pool_bytes + index * sizeof(std::uint64_t));
  return symbol ? text(*symbol) : std::nullopt;
}

std::vector<LineRun> HotSpotNames::lines_of(const Object& const_method) {
  constexpr std::uint64_t kHasLines = 1;  // ConstMethod::_has_linenumber_table, later ConstMethodFlags'
  const HotSpotMethods& places = layout_.methods;
  if ((const_method[places.flags] & kHasLines) == 0) return {};
  const std::uint64_t before = places.const_method_bytes + const_method[places.code_bytes];
  const std::uint64_t all = const_method[places.const_method_words] * sizeof(std::uint64_t);
  if (all <= before || all > std::numeric_limits<std::uint32_t>::max()) return {};
  std::vector<std::byte> table(std::min<std::uint64_t>(all - before, kMostLineTableBytes));
  if (!memory_.read(const_method.address() + before, table)) return {};
  return read_bytecode_lines(table, exclude_);
}

Result<std::int32_t> HotSpotNames::bytecode_of(const HotSpotInterpreted& frame, std::uint64_t const_method) {
  const HotSpotMethods& places = layout_.methods;
  const std::optional<Object> code = object(present_, const_method, places.const_method_bytes);
  if (!code || !slots_) return Error("no method");
  const std::uint64_t bytes = (*code)[places.code_bytes];
  if (frame.check == 0) {
    if (frame.bytecode == 0) return HotSpotCall::kEntry;
    const std::uint64_t index = frame.bytecode - const_method - places.const_method_bytes;
    if (index >= bytes) return Error("another method than the frame's");
    return static_cast<std::int32_t>(index);
  }
  std::array<std::uint64_t, 4> words{};
  const auto checked = code->bytes().subspan(slots_->check.at, sizeof(words));
  std::memcpy(words.data(), checked.data(), checked.size());
  if (check_word(words) != frame.check) return Error("another method is there by now");
  return frame.bytecode <= bytes ? static_cast<std::int32_t>(frame.bytecode) - 1 : HotSpotCall::kNotKnown;
}

Result<RuntimeFunction> HotSpotNames::const_method(std::uint64_t address) {
  // The type of a Method is not in it. What it refers to is of the right kind if a class and its constants refer to
  // each other, and the constants that are names are texts.
  const HotSpotMethods& places = layout_.methods;
  const std::optional<Object> code = object(address, places.const_method_bytes);
  if (!code) return Error("no method");
  const std::optional<Object> pool = object((*code)[places.constants], places.constant_pool_bytes);
  if (!pool) return Error("a method without constants");
  const std::uint64_t holder = (*pool)[places.pool_holder];
  // A method that HotSpot has made up, such as MethodHandle.linkToStatic, has constants of its own.
  const std::uint64_t constants = member(holder, places.class_constants);
  if (constants == 0 || member(constants, places.pool_holder) != holder) return Error("a method without a class");
  std::optional<std::string> class_name = text(member(holder, places.class_name));
  if (!class_name || class_name->empty()) return Error("a class without a name");
  const std::optional<std::string> name = pool_text(*pool, (*code)[places.name_index]);
  if (!name || name->empty()) return Error("a method without a name");

  RuntimeFunction method;
  method.name = shown_class(*std::move(class_name)) + "." + *name;
  const std::uint64_t file =
      places.pool_source_file.is_there() ? (*pool)[places.pool_source_file] : member(holder, places.class_source_file);
  method.file = pool_text(*pool, file).value_or(std::string());
  method.lines = lines_of(*code);
  if (!method.lines.empty()) method.first_line = method.lines.front().line;
  return method;
}

}  // namespace flamed::runtimes
